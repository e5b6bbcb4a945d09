// SPDX-License-Identifier: Apache-2.0
#include "cluster/session_child.h"

#include <array>
#include <cerrno>
#include <span>
#include <string>
#include <utility>

#include <sys/socket.h>

#include "aggregate/table_bytes.h"
#include "cluster/no_rows.h"
#include "cluster/session_frame.h"
#include "query/print.h"

namespace clew::cluster {
namespace {

class Teller final : public engine::Notices, public session::PaneTaker {
 public:
  explicit Teller(int socket) : socket_(socket) {}

  void tell(const Frame& frame) {
    if (written_) written_ = write_all(socket_, to_bytes(frame));
  }
  // Whether all that was told could be.
  [[nodiscard]] const Expected<void>& written() const { return written_; }
  void answers(const query::Query& query) { normal_ = query::print(query); }

  void progress(std::string_view) override {}
  void warning(std::string_view text) override {
    tell({.kind = FrameKind::Warning, .text = std::string(text)});
  }
  void armed(std::string_view) override { tell({.kind = FrameKind::Armed, .text = normal_}); }
  void made(std::string_view) override {}

  Expected<void> take(int64_t pane, const aggregate::Table& table,
                      const collect::Losses& so_far) override {
    aggregate::Table whole = table;
    whole.losses = so_far;
    tell({.kind = FrameKind::Pane, .pane = pane, .bytes = aggregate::to_bytes(whole)});
    return written_;
  }

 private:
  int socket_;
  std::string normal_;
  Expected<void> written_;
};

Expected<SessionWant> read_want(int socket) {
  FrameReader reader;
  std::array<std::byte, 4096> some{};
  while (true) {
    const ssize_t count = recv(socket, some.data(), some.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail(ErrorCode::Io, "no node says what is wanted");
    reader.add(std::span(some).first(static_cast<size_t>(count)));
    const std::optional<Frame> frame = CLEW_TRY(reader.take());
    if (frame) return want_of(*frame);
  }
}

}  // namespace

Expected<void> serve_session(int socket, engine::Request request) {
  const SessionWant want = CLEW_TRY(read_want(socket));
  Teller teller(socket);
  request.text = {.name = "query", .text = want.text};
  request.processes.name_patterns = want.name_patterns;
  request.panes = &teller;
  if (want.role) {
    request.allowed_names = want.role->processes;
    request.check_query = [&want, &request](const query::Query& query) {
      return check_query(*want.role, query, request.text, want.name_patterns);
    };
  }
  request.pane_clock = {.panes = {.epoch_ns = want.epoch_ns, .width_ns = want.width_ns},
                        .offset_ns = want.offset_ns};
  request.accept_query = [&teller](const query::Query& query) -> Expected<void> {
    teller.answers(query);
    return {};
  };
  NoRows rows;
  const Expected<engine::Outcome> outcome = engine::run(request, socket, rows, teller);
  if (outcome) {
    teller.tell({.kind = FrameKind::Ended});
  } else {
    const Error& error = outcome.error();
    teller.tell({.kind = FrameKind::Failed,
                 .pane = static_cast<int64_t>(error.code),
                 .text = error.message});
  }
  return teller.written();
}

}  // namespace clew::cluster
