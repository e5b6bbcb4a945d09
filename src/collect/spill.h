// SPDX-License-Identifier: Apache-2.0
// Raw events in a file: for a consumer that is slower than the events, and for queries that are
// asked later. Little endian. The file is a row of frames:
//
//     0    uint32 magic "CLWF"         16   uint32 CRC-32C of the payload
//     4    uint32 kind (SpillFrame)    20   uint32 CRC-32C of bytes 0..19
//     8    uint64 payload size         24   payload
//
// Start (the first frame): uint32 version, uint32 number of shapes, of each shape the uint32 least
// and most words of an event, then the note: bytes that only their writer understands (the names
// and types of fields, the clock). Events: uint64 round start, uint64 count, then the columns time,
// shape, process, tid, the uint32 number of words of those events whose shape leaves it open, and
// the words of all events. End: the file is complete, its payload is a second note (names that were
// not known before); without it the writer was killed. A frame whose payload is damaged is skipped
// and counted; where no frame begins, the next one is looked for; what is cut off is left out. Each
// of these is described with its place in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "collect/event_batch.h"

namespace clew::collect {

inline constexpr uint32_t kSpillVersion = 2;
inline constexpr size_t kSpillPayloadMax = size_t{64} << 20;
inline constexpr size_t kSpillShapesMax = 65536;
inline constexpr size_t kSpillProblemsMax = 16;
inline constexpr size_t kSpillFramesForEnd = 64;  // That may go for the end frame on a full disk.

enum class SpillFrame : uint32_t { Start = 1, Events = 2, End = 3 };

struct SpillStart {
  std::vector<EventWords> event_words{};
  std::string note{};
  bool operator==(const SpillStart&) const = default;
};

class SpillWriter {
 public:
  // Takes over what `path` holds. Io when it cannot be written.
  static Expected<SpillWriter> create(const std::string& path, const SpillStart& start);
  // Writes the events of one round as one or more frames. A frame for which the disk has no room is
  // left out whole and counted; later ones may find some.
  Expected<void> write(const EventBatch& batch, uint64_t round_start);
  // The note of the end frame, where so many events are not in the file.
  using NoteOf = std::function<std::string(uint64_t left_out)>;
  // Without room the last frames of events go for it.
  Expected<void> finish(const NoteOf& note_of);
  Expected<void> finish(std::string_view note = {});
  // Events for which there was no room; what went for the end frame was there to be read.
  [[nodiscard]] uint64_t dropped() const { return dropped_; }

 private:
  SpillWriter(FileDescriptor file, std::string path, std::vector<EventWords> event_words);
  // False: there is no room, and nothing of it is in the file.
  Expected<bool> write_frame(SpillFrame kind, std::span<const std::byte> payload);
  Expected<void> cut();
  Expected<void> write_events(const EventBatch& batch, size_t begin, size_t end,
                              uint64_t round_start);

  FileDescriptor file_;
  std::string path_;
  std::vector<EventWords> event_words_;
  std::vector<std::byte> payload_;
  struct Written {
    uint64_t offset;
    uint64_t events;
  };
  uint64_t end_ = 0;              // Of the last frame.
  std::vector<Written> written_;  // The last frames of events.
  uint64_t dropped_ = 0;
};

struct SpillRound {
  EventBatch batch{};
  uint64_t round_start = 0;
};

class SpillReader {
 public:
  // InvalidQuery when it is no spill file, or one of another version.
  static Expected<SpillReader> open(const std::string& path);
  [[nodiscard]] const SpillStart& start() const { return start_; }
  // The next round; none at the end. In a file that is still written: none yet, ask again.
  Expected<std::optional<SpillRound>> next();
  [[nodiscard]] uint64_t damaged_frames() const { return damaged_frames_; }
  // After the last round: false when the file has no end frame.
  [[nodiscard]] bool complete() const { return complete_; }
  // What the end frame says.
  [[nodiscard]] const std::string& end_note() const { return end_note_; }
  // Sentences about the damage seen so far, the first kSpillProblemsMax of them:
  // "events.spill: byte 4096: …".
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  // After the last round: bytes behind the last whole frame.
  [[nodiscard]] uint64_t bytes_left_over() const { return bytes_left_over_; }

 private:
  struct Frame {
    SpillFrame kind;
    bool intact;  // The payload has its checksum.
  };
  SpillReader(FileDescriptor file, std::string path);
  // None at the end of the file.
  Expected<std::optional<Frame>> read_frame();
  // Moves `offset_` to the next place where a frame may begin; false when there is none.
  Expected<bool> find_frame();
  void damaged(uint64_t offset, std::string_view what);
  [[nodiscard]] bool parse_start();
  [[nodiscard]] bool parse_events(SpillRound& round) const;

  FileDescriptor file_;
  std::string path_;
  SpillStart start_;
  std::vector<std::byte> payload_;
  uint64_t offset_ = 0;  // Of the next frame.
  uint64_t damaged_frames_ = 0;
  uint64_t bytes_left_over_ = 0;
  std::vector<std::string> problems_;
  std::string end_note_;
  bool complete_ = false;
};

}  // namespace clew::collect
