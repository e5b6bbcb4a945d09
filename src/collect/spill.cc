// SPDX-License-Identifier: Apache-2.0
#include "collect/spill.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "abi/region.h"
#include "base/assert.h"
#include "base/error_text.h"
#include "collect/bytes.h"
#include "collect/crc32c.h"

namespace clew::collect {
namespace {

constexpr uint32_t kMagic = 0x46574C43;  // "CLWF", little endian.

struct FrameHeader {
  uint32_t magic;
  uint32_t kind;
  uint64_t size_bytes;
  uint32_t payload_crc;
  uint32_t header_crc;
};
static_assert(sizeof(FrameHeader) == 24);
constexpr size_t kCheckedHeaderBytes = 20;

tl::unexpected<Error> io_error(const std::string& path, const char* call) {
  return fail(ErrorCode::Io, fmt::format("{}: {}: {}", path, call, error_text(errno)));
}

// False: there is no room for all of them.
Expected<bool> write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) return false;
    if (written < 0) return io_error(path, "write");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

struct FilePlace {
  int fd;
  uint64_t offset;
};

// How many bytes were there, at most as many as asked for.
Expected<size_t> read_at(const FilePlace& place, std::span<std::byte> bytes,
                         const std::string& path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = pread(place.fd, bytes.data() + done, bytes.size() - done,
                              static_cast<off_t>(place.offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error(path, "read");
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

uint32_t header_crc_of(const FrameHeader& header) {
  return crc32c(std::as_bytes(std::span(&header, 1)).first(kCheckedHeaderBytes));
}

}  // namespace

SpillWriter::SpillWriter(FileDescriptor file, std::string path, std::vector<EventWords> event_words)
    : file_(std::move(file)), path_(std::move(path)), event_words_(std::move(event_words)) {}

Expected<SpillWriter> SpillWriter::create(const std::string& path, const SpillStart& start) {
  if (start.event_words.size() > kSpillShapesMax || start.note.size() > kSpillPayloadMax / 2) {
    return fail(ErrorCode::Limit, fmt::format("{}: too many kinds of events", path));
  }
  FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.valid()) return io_error(path, "open");
  SpillWriter writer(std::move(file), path, start.event_words);
  std::vector<std::byte> payload;
  append(payload, kSpillVersion);
  append(payload, static_cast<uint32_t>(start.event_words.size()));
  append(payload, std::span<const EventWords>(start.event_words));
  append(payload, std::span<const char>(start.note));
  if (CLEW_TRY(writer.write_frame(SpillFrame::Start, payload))) return writer;
  errno = ENOSPC;
  return io_error(path, "write");
}

Expected<bool> SpillWriter::write_frame(SpillFrame kind, std::span<const std::byte> payload) {
  if (payload.size() > kSpillPayloadMax) {
    return fail(ErrorCode::Limit, fmt::format("{}: {} bytes of names, more than a file can hold",
                                              path_, payload.size()));
  }
  FrameHeader header{.magic = kMagic,
                     .kind = static_cast<uint32_t>(kind),
                     .size_bytes = payload.size(),
                     .payload_crc = crc32c(payload),
                     .header_crc = 0};
  header.header_crc = header_crc_of(header);
  const bool has_room =
      CLEW_TRY(write_all(file_.get(), std::as_bytes(std::span(&header, 1)), path_)) &&
      CLEW_TRY(write_all(file_.get(), payload, path_));
  if (has_room) {
    end_ += sizeof header + payload.size();
    return true;
  }
  CLEW_TRY(cut());
  return false;
}

// What is behind the last whole frame.
Expected<void> SpillWriter::cut() {
  const auto end = static_cast<off_t>(end_);
  if (ftruncate(file_.get(), end) != 0) return io_error(path_, "ftruncate");
  if (lseek(file_.get(), end, SEEK_SET) != end) return io_error(path_, "lseek");
  return {};
}

Expected<void> SpillWriter::write(const EventBatch& batch, uint64_t round_start) {
  // An event takes at most kEventSizeMax bytes of words and 24 of columns.
  constexpr size_t kEventsPerFrame = kSpillPayloadMax / abi::kEventSizeMax / 2;
  for (size_t begin = 0; begin < batch.size(); begin += kEventsPerFrame) {
    const size_t end = std::min(begin + kEventsPerFrame, batch.size());
    CLEW_TRY(write_events(batch, begin, end, round_start));
  }
  return {};
}

Expected<void> SpillWriter::write_events(const EventBatch& batch, size_t begin, size_t end,
                                         uint64_t round_start) {
  const size_t count = end - begin;
  payload_.clear();
  append(payload_, round_start);
  append(payload_, static_cast<uint64_t>(count));
  append(payload_, batch.times().subspan(begin, count));
  append(payload_, batch.shapes().subspan(begin, count));
  append(payload_, batch.processes().subspan(begin, count));
  append(payload_, batch.tids().subspan(begin, count));
  for (size_t i = begin; i < end; ++i) {
    const Event event = batch.at(i);
    CLEW_ASSERT(event.shape < event_words_.size());
    CLEW_ASSERT(event_words_[event.shape].allow(event.words.size()));
    if (!event_words_[event.shape].vary()) continue;
    append(payload_, static_cast<uint32_t>(event.words.size()));
  }
  for (size_t i = begin; i < end; ++i)
    append(payload_, batch.at(i).words);
  const Written frame{.offset = end_, .events = count};
  if (!CLEW_TRY(write_frame(SpillFrame::Events, payload_))) {
    dropped_ += count;
    return {};
  }
  if (written_.size() == kSpillFramesForEnd) written_.erase(written_.begin());
  written_.push_back(frame);
  return {};
}

Expected<void> SpillWriter::finish(const NoteOf& note_of) {
  uint64_t left_out = dropped_;
  while (true) {
    const std::string note = note_of(left_out);
    if (CLEW_TRY(write_frame(SpillFrame::End, std::as_bytes(std::span(note))))) return {};
    if (written_.empty()) {
      errno = ENOSPC;
      return io_error(path_, "write");
    }
    end_ = written_.back().offset;
    left_out += written_.back().events;
    written_.pop_back();
    CLEW_TRY(cut());
  }
}

Expected<void> SpillWriter::finish(std::string_view note) {
  return finish([note](uint64_t) { return std::string(note); });
}

SpillReader::SpillReader(FileDescriptor file, std::string path)
    : file_(std::move(file)), path_(std::move(path)) {}

Expected<SpillReader> SpillReader::open(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return io_error(path, "open");
  SpillReader reader(std::move(file), path);
  const auto frame = CLEW_TRY(reader.read_frame());
  if (!frame || frame->kind != SpillFrame::Start || !frame->intact || !reader.parse_start()) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("{}: this is not a file of events, or it was written by another "
                            "version of clew",
                            path));
  }
  return reader;
}

void SpillReader::damaged(uint64_t offset, std::string_view what) {
  ++damaged_frames_;
  if (problems_.size() < kSpillProblemsMax) {
    problems_.push_back(fmt::format("{}: byte {}: {}", path_, offset, what));
  }
}

namespace {

bool is_frame(const FrameHeader& header) {
  return header.magic == kMagic && header.header_crc == header_crc_of(header) &&
         header.size_bytes <= kSpillPayloadMax;
}

}  // namespace

// Frames are not aligned, so every byte may be the first of one.
Expected<bool> SpillReader::find_frame() {
  constexpr size_t kBlockBytes = size_t{64} * 1024;
  std::vector<std::byte> block(kBlockBytes);
  for (uint64_t begin = offset_ + 1;; begin += kBlockBytes - sizeof(FrameHeader)) {
    const size_t got = CLEW_TRY(read_at({file_.get(), begin}, block, path_));
    for (size_t i = 0; i + sizeof(FrameHeader) <= got; ++i) {
      FrameHeader header{};
      std::memcpy(&header, block.data() + i, sizeof(header));
      if (header.magic != kMagic || !is_frame(header)) continue;
      offset_ = begin + i;
      return true;
    }
    if (got < kBlockBytes) return false;
  }
}

Expected<std::optional<SpillReader::Frame>> SpillReader::read_frame() {
  FrameHeader header{};
  const auto header_bytes = std::as_writable_bytes(std::span(&header, 1));
  size_t got = CLEW_TRY(read_at({file_.get(), offset_}, header_bytes, path_));
  if (got == sizeof(header) && !is_frame(header)) {
    const uint64_t bad = offset_;
    if (!CLEW_TRY(find_frame())) {
      bytes_left_over_ = got;
      return std::nullopt;
    }
    damaged(bad, fmt::format("no frame begins here; {} bytes are left out", offset_ - bad));
    got = CLEW_TRY(read_at({file_.get(), offset_}, header_bytes, path_));
  }
  bytes_left_over_ = got;
  if (got < sizeof(header)) return std::nullopt;
  payload_.resize(header.size_bytes);
  const uint64_t at = offset_ + sizeof(header);
  const size_t payload_bytes = CLEW_TRY(read_at({file_.get(), at}, payload_, path_));
  bytes_left_over_ += payload_bytes;
  if (payload_bytes < payload_.size()) return std::nullopt;
  bytes_left_over_ = 0;
  offset_ = at + payload_bytes;
  return Frame{.kind = static_cast<SpillFrame>(header.kind),
               .intact = header.payload_crc == crc32c(payload_)};
}

bool SpillReader::parse_start() {
  Cursor cursor(payload_);
  const auto version = cursor.take<uint32_t>();
  const auto shapes = cursor.take<uint32_t>();
  if (version != kSpillVersion || shapes > kSpillShapesMax) return false;
  start_.event_words = cursor.take_many<EventWords>(shapes);
  const auto note = cursor.rest();
  start_.note.assign(reinterpret_cast<const char*>(note.data()), note.size());
  return !cursor.failed();
}

bool SpillReader::parse_events(SpillRound& round) const {
  Cursor cursor(payload_);
  round.round_start = cursor.take<uint64_t>();
  const auto count = cursor.take<uint64_t>();
  const auto times = cursor.take_many<uint64_t>(count);
  const auto shapes = cursor.take_many<uint32_t>(count);
  const auto processes = cursor.take_many<uint32_t>(count);
  const auto tids = cursor.take_many<uint32_t>(count);
  if (cursor.failed()) return false;
  std::vector<uint32_t> sizes;
  sizes.reserve(count);
  for (const uint32_t shape : shapes) {
    if (shape >= start_.event_words.size()) return false;
    const EventWords& range = start_.event_words[shape];
    sizes.push_back(range.vary() ? cursor.take<uint32_t>() : range.most);
    if (!range.allow(sizes.back())) return false;
  }
  for (size_t i = 0; i < count; ++i) {
    const auto words = cursor.take_many<uint64_t>(sizes[i]);
    if (cursor.failed()) return false;
    round.batch.push({.shape = shapes[i],
                      .process = processes[i],
                      .tid = tids[i],
                      .time = times[i],
                      .words = words});
  }
  return cursor.rest().empty();
}

Expected<std::optional<SpillRound>> SpillReader::next() {
  while (!complete_) {
    const uint64_t begin = offset_;
    const auto frame = CLEW_TRY(read_frame());
    if (!frame) return std::nullopt;
    SpillRound round;
    const bool events = frame->kind == SpillFrame::Events && frame->intact;
    if (events && parse_events(round)) return round;
    if (frame->kind == SpillFrame::End && frame->intact) {
      complete_ = true;
      end_note_.assign(reinterpret_cast<const char*>(payload_.data()), payload_.size());
    } else {
      damaged(begin, "a frame is damaged; its events are left out");
    }
  }
  return std::nullopt;
}

}  // namespace clew::collect
