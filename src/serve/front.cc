// SPDX-License-Identifier: Apache-2.0
#include "serve/front.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock_ns.h"
#include "base/error_text.h"

namespace clew::serve {
namespace {

constexpr size_t kLinesBytesMax = 12 << 20;
constexpr int64_t kBeatNs = 1'000'000'000;
constexpr unsigned kNobody = 65534;  // Debian's nobody and nogroup: files of nobody's.

Expected<void> checked(int result, const char* call) {
  if (result == 0) return {};
  return fail(ErrorCode::Io, fmt::format("{}: {}", call, error_text(errno)));
}

Expected<void> become_nobody() {
  CLEW_TRY(checked(setgroups(0, nullptr), "setgroups"));
  CLEW_TRY(checked(setresgid(kNobody, kNobody, kNobody), "setresgid"));
  return checked(setresuid(kNobody, kNobody, kNobody), "setresuid");
}

class FrontLoop {
 public:
  explicit FrontLoop(FrontParts parts)
      : channel_(std::move(parts.channel)),
        page_(std::move(parts.page)),
        listener_(std::move(parts.listener)),
        token_(std::move(parts.token)),
        facts_(std::move(parts.facts)) {}

  Expected<void> run() {
    server_ = CLEW_TRY(HttpServer::start(listener_, {api_, lines_, page_, token_}));
    next_beat_ns_ = clock_ns(CLOCK_MONOTONIC) + kBeatNs;
    while (true)
      CLEW_TRY(turn());
  }

 private:
  Expected<void> turn() {
    std::array<pollfd, 2> waited{
        {{server_->descriptor(), POLLIN, 0}, {channel_.descriptor(), channel_.events(), 0}}};
    (void)poll(waited.data(), waited.size(), wait_ms());
    if ((waited[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) CLEW_TRY(listen());
    server_->wake_streams();
    if (clock_ns(CLOCK_MONOTONIC) >= next_beat_ns_) {
      next_beat_ns_ += kBeatNs;
      server_->beat();
      api_.beat();
    }
    server_->turn();
    return channel_.flush();
  }

  [[nodiscard]] int wait_ms() const {
    constexpr int64_t kNsInMs = 1'000'000;
    const int64_t to_beat = (next_beat_ns_ - clock_ns(CLOCK_MONOTONIC)) / kNsInMs + 1;
    const int until_beat = static_cast<int>(std::clamp<int64_t>(to_beat, 0, kBeatNs / kNsInMs));
    const int of_server = server_->wait_ms();
    return of_server < 0 ? until_beat : std::min(of_server, until_beat);
  }

  Expected<void> listen() {
    CLEW_TRY(channel_.read());
    while (true) {
      const std::optional<Frame> frame = CLEW_TRY(channel_.take());
      if (!frame) return {};
      api_.take(*frame);
    }
  }

  Channel channel_;
  Page page_;
  FileDescriptor listener_;
  std::string token_;
  ServerFacts facts_;
  Lines lines_{kLinesBytesMax};
  Api api_{channel_, lines_, facts_};
  std::unique_ptr<HttpServer> server_;
  int64_t next_beat_ns_ = 0;
};

}  // namespace

Expected<void> give_up_rights() {
  if (geteuid() == 0) CLEW_TRY(become_nobody());
  CLEW_TRY(checked(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl"));
  return checked(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl");
}

Expected<void> serve_browsers(FrontParts parts) {
  return FrontLoop(std::move(parts)).run();
}

}  // namespace clew::serve
