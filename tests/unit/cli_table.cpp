#include <doctest/doctest.h>

#include <sstream>

#include "cli/table.h"
#include "cli/text.h"

using namespace aiq::cli;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

const std::vector<Column> kColumns = {{"ID", true}, {"STATUS"}, {"MODEL", false, true}};

}  // namespace

TEST_CASE("table: columns are aligned, numbers to the right, no trailing spaces") {
  Table table(kColumns, std::nullopt, false);
  table.add({std::string("7"), std::string("queued"), std::string("small")});
  table.add({std::string("1234"), std::string("completed"), std::string("a-much-longer-model")});
  CHECK(table.take() ==
        "  ID  STATUS     MODEL\n"
        "   7  queued     small\n"
        "1234  completed  a-much-longer-model\n");
}

TEST_CASE("table: later pages have no titles and keep the widths") {
  Table table(kColumns, std::nullopt, false);
  table.add({std::string("1000"), std::string("completed"), std::string("m")});
  static_cast<void>(table.take());
  table.add({std::string("7"), std::string("queued"), std::string("m")});
  CHECK(table.take() == "   7  queued     m\n");
  CHECK(table.empty());
}

TEST_CASE("table: fits 80 columns by cutting what may be cut, never the numbers") {
  Table table({{"ID", true}, {"TENANT", false, true}, {"MODEL", false, true}, {"AGE", true}}, 80,
              false);
  const std::string id = "9223372036854775807";
  table.add({id, std::string(60, 't'), std::string(70, 'm'), std::string("3m ago")});
  const auto lines = lines_of(table.take());
  REQUIRE(lines.size() == 2);
  for (const std::string& line : lines)
    CHECK(display_width(line) <= 80);
  CHECK(lines[1].find(id) == 0);
  CHECK(lines[1].find("…") != std::string::npos);
  CHECK(lines[1].ends_with("3m ago"));
}

TEST_CASE("table: too wide, it leaves out what says nothing, then what is extra, from the right") {
  const std::vector<Column> columns = {{"ID"},
                                       {.title = "KIND", .shrinks = true, .extra = true},
                                       {"NONE"},
                                       {.title = "LAST", .extra = true}};
  const std::string word(10, 'w');
  const auto titles = [&](std::size_t width, const std::string& none) {
    Table table(columns, width, false);
    table.add({word, word, none, word});
    return lines_of(table.take()).at(0);
  };
  CHECK(titles(40, "-") == "ID          KIND        NONE  LAST");
  CHECK(titles(34, "-") == "ID          KIND        LAST");
  CHECK(titles(34, "x") == "ID          KIND        NONE");
  CHECK(titles(23, "0.00") == "ID          KIND");
  CHECK(titles(10, "") == "ID");
}

TEST_CASE("table: what was left out comes back with titles when a later page needs it") {
  Table table({{"ID"}, {"NOTE"}}, 8, false);
  table.add({std::string("12345"), std::string("-")});
  CHECK(table.take() == "ID\n12345\n");
  table.add({std::string("12346"), std::string("-")});
  CHECK(table.take() == "12346\n");
  table.add({std::string("12347"), std::string("!")});
  CHECK(table.take() == "ID     NOTE\n12347  !\n");
}

TEST_CASE("table: nothing is cut where there is no terminal") {
  Table table(kColumns, std::nullopt, false);
  const std::string model(200, 'm');
  table.add({std::string("7"), std::string("queued"), model});
  CHECK(table.take().find(model) != std::string::npos);
}

TEST_CASE("table: wide characters count as two columns") {
  Table table({{"NAME"}, {"N", true}}, std::nullopt, false);
  table.add({std::string("\u65e5\u672c"), std::string("1")});
  table.add({std::string("abcd"), std::string("2")});
  const auto lines = lines_of(table.take());
  CHECK(lines[1] == "\u65e5\u672c  1");
  CHECK(lines[2] == "abcd  2");
}

TEST_CASE("table: colours stand around the text and do not move the columns") {
  Table plain(kColumns, std::nullopt, false);
  Table colored(kColumns, std::nullopt, true);
  for (Table* table : {&plain, &colored}) {
    table->add({std::string("7"), {"failed", Tone::bad}, std::string("m")});
  }
  const std::string text = colored.take();
  CHECK(text.find("\x1b[31mfailed\x1b[0m") != std::string::npos);
  std::string stripped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else {
      stripped += text[i];
    }
  }
  CHECK(stripped == plain.take());
}

TEST_CASE("table: an escape sequence in a cell is not passed on") {
  Table table({{"REASON"}}, std::nullopt, false);
  table.add({std::string("\x1b[2Jgone")});
  CHECK(table.take().find('\x1b') == std::string::npos);
}
