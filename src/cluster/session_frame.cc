// SPDX-License-Identifier: Apache-2.0
#include "cluster/session_frame.h"

#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "base/error_text.h"
#include "collect/bytes.h"

namespace clew::cluster {
namespace {

using collect::append;
using collect::Cursor;

void append_text(std::vector<std::byte>& bytes, const std::string& text) {
  append(bytes, static_cast<uint32_t>(text.size()));
  append(bytes, std::span<const char>(text));
}

std::string take_text(Cursor& cursor) {
  const std::vector<char> text = cursor.take_many<char>(cursor.take<uint32_t>());
  return {text.begin(), text.end()};
}

void append_texts(std::vector<std::byte>& bytes, const std::vector<std::string>& texts) {
  append(bytes, static_cast<uint32_t>(texts.size()));
  for (const std::string& text : texts)
    append_text(bytes, text);
}

// Each takes bytes, so a count that is not true ends soon.
std::vector<std::string> take_texts(Cursor& cursor) {
  std::vector<std::string> texts;
  const auto count = cursor.take<uint32_t>();
  for (uint32_t i = 0; i < count && !cursor.failed(); ++i)
    texts.push_back(take_text(cursor));
  return texts;
}

void append_role(std::vector<std::byte>& bytes, const Role& role) {
  append_text(bytes, role.name);
  append_texts(bytes, role.sources);
  append_texts(bytes, role.processes);
  for (const bool may : {role.memory, role.kernel, role.cause})
    append(bytes, static_cast<uint8_t>(may));
}

Role take_role(Cursor& cursor) {
  Role role{.name = take_text(cursor)};
  role.sources = take_texts(cursor);
  role.processes = take_texts(cursor);
  for (bool* const may : {&role.memory, &role.kernel, &role.cause})
    *may = cursor.take<uint8_t>() == 1;
  return role;
}

tl::unexpected<Error> fail_frame() {
  return fail(ErrorCode::Io, "what a session's process and its node say makes no sense");
}

}  // namespace

std::vector<std::byte> to_bytes(const Frame& frame) {
  std::vector<std::byte> bytes;
  append(bytes, uint32_t{0});
  append(bytes, frame.kind);
  append(bytes, frame.pane);
  append_text(bytes, frame.text);
  append(bytes, std::span<const std::byte>(frame.bytes));
  const auto size = static_cast<uint32_t>(bytes.size() - sizeof(uint32_t));
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes;
}

Frame frame_of(const SessionWant& want) {
  Frame frame{.kind = FrameKind::Want, .text = want.text};
  append(frame.bytes, want.epoch_ns);
  append(frame.bytes, want.width_ns);
  append(frame.bytes, want.offset_ns);
  append_texts(frame.bytes, want.name_patterns);
  append(frame.bytes, static_cast<uint8_t>(want.role.has_value()));
  if (want.role) append_role(frame.bytes, *want.role);
  return frame;
}

Expected<SessionWant> want_of(const Frame& frame) {
  Cursor cursor(frame.bytes);
  SessionWant want;
  want.text = frame.text;
  want.epoch_ns = cursor.take<int64_t>();
  want.width_ns = cursor.take<int64_t>();
  want.offset_ns = cursor.take<int64_t>();
  want.name_patterns = take_texts(cursor);
  // Whatever is not the word for none: a role, or nothing that makes sense.
  if (cursor.take<uint8_t>() != 0) want.role = take_role(cursor);
  const bool is_whole = !cursor.failed() && cursor.rest().empty();
  if (frame.kind != FrameKind::Want || !is_whole || want.width_ns < 1) return fail_frame();
  return want;
}

Expected<std::optional<Frame>> FrameReader::take() {
  Cursor cursor(bytes_);
  const auto size = cursor.take<uint32_t>();
  if (cursor.failed()) return std::nullopt;
  if (size > kFrameMax) return fail_frame();
  if (cursor.rest().size() < size) return std::nullopt;
  Cursor inside(cursor.rest().first(size));
  Frame frame;
  frame.kind = inside.take<FrameKind>();
  frame.pane = inside.take<int64_t>();
  frame.text = take_text(inside);
  if (inside.failed() || frame.kind > FrameKind::Ended) return fail_frame();
  frame.bytes.assign(inside.rest().begin(), inside.rest().end());
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<int64_t>(sizeof size + size));
  return frame;
}

Expected<void> write_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written > 0) bytes = bytes.subspan(static_cast<size_t>(written));
    if (written >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN)
      return fail(ErrorCode::Io, "cannot write to a socket: " + error_text(errno));
    pollfd waits{.fd = socket, .events = POLLOUT, .revents = 0};
    (void)poll(&waits, 1, -1);
  }
  return {};
}

}  // namespace clew::cluster
