// SPDX-License-Identifier: Apache-2.0
#include "serve/frame.h"

#include <cstring>

namespace clew::serve {
namespace {

constexpr size_t kSizeBytes = sizeof(uint32_t);
constexpr size_t kHeadBytes = 1 + sizeof(uint32_t);

void put_number(std::string& bytes, uint32_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

uint32_t number_at(std::string_view bytes) {
  uint32_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

tl::unexpected<Error> no_frame(const char* why) {
  return fail(ErrorCode::Limit, std::string("what the other process says is no frame: ") + why);
}

Expected<Frame> frame_of(std::string_view bytes) {
  if (bytes.size() < kHeadBytes) return no_frame("it has no head");
  const auto kind = static_cast<uint8_t>(bytes.front());
  if (kind >= kFrameKinds) return no_frame("its kind is unknown");
  Frame frame{.kind = static_cast<FrameKind>(kind), .child = number_at(bytes.substr(1))};
  bytes.remove_prefix(kHeadBytes);
  while (!bytes.empty()) {
    if (bytes.size() < kSizeBytes) return no_frame("a field has no size");
    const uint32_t size = number_at(bytes);
    bytes.remove_prefix(kSizeBytes);
    if (size > bytes.size()) return no_frame("a field is longer than it");
    if (frame.fields.size() == kFrameFieldsMax) return no_frame("it has too many fields");
    frame.fields.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return frame;
}

}  // namespace

std::string to_bytes(const Frame& frame) {
  std::string rest(1, static_cast<char>(frame.kind));
  put_number(rest, frame.child);
  for (const std::string& field : frame.fields) {
    put_number(rest, static_cast<uint32_t>(field.size()));
    rest += field;
  }
  std::string bytes;
  put_number(bytes, static_cast<uint32_t>(rest.size()));
  return bytes += rest;
}

Expected<std::optional<Frame>> FrameReader::take() {
  const std::string_view left = std::string_view(bytes_).substr(at_);
  const uint32_t size = left.size() < kSizeBytes ? 0 : number_at(left);
  if (size > kFrameBytesMax) return no_frame("it is too long");
  if (left.size() < kSizeBytes || left.size() - kSizeBytes < size) {
    bytes_.erase(0, at_);
    at_ = 0;
    return std::optional<Frame>();
  }
  at_ += kSizeBytes + size;
  return std::optional<Frame>(CLEW_TRY(frame_of(left.substr(kSizeBytes, size))));
}

}  // namespace clew::serve
