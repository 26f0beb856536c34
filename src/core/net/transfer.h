#pragma once
// One exchange on one curl handle: its options, its callbacks, its timeouts and what it ended as.
// Lives on one transfer thread.

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <curl/curl.h>

#include "core/model/http.h"
#include "core/net/deadlines.h"
#include "core/net/transport.h"

namespace aiq {

// A vendor's headers are a few KiB; more than this in one answer is an attack or a defect.
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{256} * 1024;

class Transfer {
 public:
  using Done = std::function<void(HttpResult)>;

  // Sets `easy` up for `request`; `easy` stays the caller's and must outlive this or be reset.
  // Timeouts count from `started_at`.
  Transfer(TransferId id, MonoMs started_at, HttpRequest request, Done done, CURL* easy,
           Deadlines& deadlines);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  [[nodiscard]] TransferId id() const { return id_; }
  [[nodiscard]] CURL* easy() const { return easy_; }

  // The request can't be expressed (a line break in a header, a URL that curl refuses): text why.
  // Such a transfer must not be run. "" = fine.
  [[nodiscard]] const std::string& setup_error() const { return setup_error_; }

  // Which timeout has passed, once its deadline has come. The first answer byte is taken as come
  // when the status line is whole, which is when curl shows it.
  [[nodiscard]] HttpResult::Failure expired(MonoMs now) const;

  // What it ended as by curl's own judgement.
  [[nodiscard]] HttpResult result(CURLcode code, MonoMs now);
  // What it ended as by ours: a timeout or a cancel.
  [[nodiscard]] HttpResult aborted(HttpResult::Failure failure, MonoMs now);

  [[nodiscard]] Done take_done() { return std::move(done_); }

 private:
  enum class Phase { connecting, sending, waiting, receiving };

  static std::size_t on_read(char* to, std::size_t size, std::size_t count, void* self);
  static std::size_t on_header(char* line, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* self);
  static int on_request(void* self, char*, char*, int, int);

  void set_options();
  void set_headers();
  template <class T>
  void set(CURLoption option, T value);
  void enter(Phase phase);
  [[nodiscard]] MonoMs deadline() const;
  [[nodiscard]] bool take_header(std::string_view line);
  [[nodiscard]] HttpResult::Failure judge(CURLcode code) const;
  [[nodiscard]] HttpResult take_result(HttpResult::Failure failure, MonoMs now);

  const TransferId id_;
  const MonoMs started_at_;
  HttpRequest request_;
  Done done_;
  CURL* const easy_;
  Deadlines& deadlines_;
  Deadlines::Entry deadline_entry_;
  curl_slist* header_list_ = nullptr;
  std::string setup_error_;
  std::array<char, CURL_ERROR_SIZE> error_text_{};

  Phase phase_ = Phase::connecting;
  std::size_t body_sent_ = 0;
  MonoMs connected_at_ = 0;     // since Phase::sending
  MonoMs request_sent_at_ = 0;  // since Phase::waiting
  MonoMs first_byte_at_ = 0;    // since Phase::receiving
  std::size_t header_bytes_ = 0;
  bool headers_whole_ = false;                               // of the final answer
  HttpResult::Failure refused_ = HttpResult::Failure::none;  // why a callback stopped curl
  HttpResult result_;
};

}  // namespace aiq
