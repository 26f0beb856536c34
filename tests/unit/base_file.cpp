#include "core/base/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace aiq;

namespace {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "aiq-file-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

unsigned mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777U;
}

bool is_open(int fd) {
  return fcntl(fd, F_GETFD) >= 0;
}

}  // namespace

TEST_CASE("file: a whole file is read, with every byte") {
  const Folder folder;
  const std::string big(200'000, 'x');
  for (const std::string& text : {std::string(), std::string("a\0\r\nb", 5), big}) {
    put(folder / "f", text);
    const auto read = read_file(folder / "f", 1'000'000);
    REQUIRE(read.has_value());
    CHECK(read.value() == text);
  }
}

TEST_CASE("file: a file beyond the limit is an error, one of the limit is not") {
  const Folder folder;
  put(folder / "f", "12345");
  CHECK(read_file(folder / "f", 5).has_value());
  const auto read = read_file(folder / "f", 4);
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().code == EFBIG);
}

TEST_CASE("file: errors name the path and the reason") {
  const Folder folder;
  const auto missing = read_file(folder / "none", 10);
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code == ENOENT);
  CHECK(missing.error().message ==
        "cannot read " + (folder / "none") + ": No such file or directory");
  const auto is_folder = read_file(folder / "", 10);
  REQUIRE_FALSE(is_folder.has_value());
  CHECK(is_folder.error().code == EISDIR);
}

TEST_CASE("file: '-' is standard input") {
  const Folder folder;
  put(folder / "in", "piped");
  const Fd saved(dup(STDIN_FILENO));
  const Fd input(open((folder / "in").c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(dup2(input.get(), STDIN_FILENO) == STDIN_FILENO);
  const auto read = read_file("-", 100);
  if (saved) {
    dup2(saved.get(), STDIN_FILENO);
  } else {
    close(STDIN_FILENO);
  }
  REQUIRE(read.has_value());
  CHECK(read.value() == "piped");
}

TEST_CASE("file: folders are made with their parents, existing ones keep their mode") {
  const Folder folder;
  REQUIRE(make_folders(folder / "a", 0750).has_value());
  const unsigned before = mode_of(folder / "a");
  REQUIRE(make_folders(folder / "a//b/c/", 0700).has_value());
  CHECK(mode_of(folder / "a") == before);
  CHECK(mode_of(folder / "a/b") == 0700);
  CHECK(mode_of(folder / "a/b/c") == 0700);
  CHECK(make_folders(folder / "a/b/c", 0700).has_value());
  CHECK(make_folders("/", 0700).has_value());
}

TEST_CASE("file: a file in the way of a folder is an error") {
  const Folder folder;
  put(folder / "f", "");
  const auto made = make_folders(folder / "f/sub", 0700);
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().code == ENOTDIR);
  CHECK(made.error().message.find(folder / "f") != std::string::npos);
}

TEST_CASE("file: write_all goes on after short writes") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const Fd out(ends[0]);
  Fd in(ends[1]);
  const std::string sent(1'000'000, 'y');  // more than a pipe holds
  std::string got;
  std::jthread reader([&] {
    char chunk[4096];
    for (ssize_t n = 0; (n = read(out.get(), chunk, sizeof chunk)) > 0;) {
      got.append(chunk, static_cast<std::size_t>(n));
    }
  });
  CHECK(write_all(in.get(), sent) == 0);
  in.reset();
  reader.join();
  CHECK(got == sent);
}

TEST_CASE("file: write_all returns the error") {
  const Folder folder;
  put(folder / "f", "");
  const Fd read_only(open((folder / "f").c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(write_all(read_only.get(), "x") == EBADF);
  CHECK(write_all(read_only.get(), "") == 0);
  const Fd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  CHECK(write_all(full.get(), "x") == ENOSPC);
}

TEST_CASE("file: a descriptor has one owner and is closed once") {
  Fd first(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int number = first.get();
  REQUIRE(is_open(number));
  Fd second(std::move(first));
  CHECK(second.get() == number);
  CHECK(is_open(number));
  Fd third(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int replaced = third.get();
  third = std::move(second);
  CHECK_FALSE(is_open(replaced));
  third.reset();
  CHECK_FALSE(is_open(number));
  CHECK_FALSE(static_cast<bool>(third));
  third.reset();
}

TEST_CASE("file: errno has words") {
  CHECK(errno_text(ENOSPC) == "No space left on device");
  CHECK_FALSE(errno_text(123456).empty());
}

TEST_CASE("file: the folder of a path") {
  CHECK(folder_of("/a/b.db") == "/a");
  CHECK(folder_of("b.db") == ".");
  CHECK(folder_of("/b.db") == "/");
  CHECK(folder_of("a/b/c") == "a/b");
}
