// SPDX-License-Identifier: Apache-2.0
// Fuzzes answers from recordings: the note and the events are anything, inside a file whose frames
// are whole (collect/spill_fuzz.cc breaks these).
//
//     byte 0: the question    then the note, up to a byte 0    then events: 4 bytes of shape and
//     process, 4 of thread, 8 of time, a byte for the number of words, the words
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/file_descriptor.h"
#include "collect/spill.h"
#include "output/sinks.h"
#include "plan/plan.h"
#include "query/diagnostic.h"
#include "query/parse.h"
#include "session/recorded_file.h"
#include "session/session.h"

namespace {

using clew::Expected;
using clew::FileDescriptor;
namespace collect = clew::collect;
namespace output = clew::output;
namespace plan = clew::plan;
namespace query = clew::query;
namespace session = clew::session;

constexpr uint32_t kWordsMax = 4;

constexpr std::array<const char*, 7> kQuestions = {
    R"(from e in entry("a!f") select e.arg0)",
    R"(from e in entry("a!f") select e.time, e.pid, e.tid, e.comm, e.procName, e.function, e.host)",
    R"(from e in entry("a!f") where e.arg0 > 3 groupby e.function as f
       select f, count(), sum(e.arg0))",
    R"(from e in return("a!f") select e.caller, e.retval, e.elapsed take 3)",
    R"(from e in return("a!f") groupby e.caller as c
       select c, quantize(e.elapsed), topk(e.retval, 3))",
    R"(from e in entry("a!f") select str(e.arg0), e.module)",
    R"(from e in entry("a!f") groupby e.ustack(3) as s select s, count())",
};

// The front of `bytes`, zeros behind their end.
template <typename Value>
Value take(std::span<const uint8_t>& bytes) {
  Value value{};
  const size_t size = std::min(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), size);
  bytes = bytes.subspan(size);
  return value;
}

std::string_view take_note(std::span<const uint8_t>& bytes) {
  const auto end = std::find(bytes.begin(), bytes.end(), 0);
  const auto size = static_cast<size_t>(end - bytes.begin());
  const std::string_view note(reinterpret_cast<const char*>(bytes.data()), size);
  bytes = bytes.subspan(std::min(size + 1, bytes.size()));
  return note;
}

// As many shapes as the note says, else its reader would not go on.
size_t shapes_in(std::string_view note) {
  const auto recording = session::recording_of(std::string(note));
  return recording ? std::min<size_t>(recording->sources.size(), collect::kSpillShapesMax) : 1;
}

void write_events(collect::SpillWriter& writer, std::span<const uint8_t> bytes, size_t shapes) {
  collect::EventBatch batch;
  while (!bytes.empty() && shapes != 0) {
    collect::Event event;
    event.shape = static_cast<uint32_t>(take<uint16_t>(bytes) % shapes);
    event.process = take<uint16_t>(bytes);
    event.process = (event.process & 0xF) | (event.process >> 4 << collect::kMemberShift);
    event.tid = take<uint32_t>(bytes);
    event.time = take<uint64_t>(bytes);
    std::vector<uint64_t> words(take<uint8_t>(bytes) % (kWordsMax + 1));
    for (uint64_t& word : words)
      word = take<uint64_t>(bytes);
    event.words = words;
    batch.push(event);
  }
  CLEW_ASSERT(writer.write(batch, 0).has_value());
}

Expected<void> answer(const std::string& path, const char* question) {
  const auto file = CLEW_TRY(session::RecordedFile::open(path));
  const query::Text text{.name = "query", .text = question};
  auto parsed = query::parse(text, {});
  CLEW_ASSERT(parsed.has_value());
  const plan::Plan plan = plan::plain(std::move(*parsed));
  plan::Lowered lowered;
  lowered.form = plan::StateForm::Events;
  lowered.clock = file->recording().clock;
  const plan::Grouping grouping;
  session::Numbers numbers;
  CLEW_TRY(file->prepare(plan, lowered, grouping, query::Reporter(text), numbers));
  output::StringSink bytes;
  const auto sink = output::make_sink({}, bytes, bytes);
  const FileDescriptor stop(eventfd(0, EFD_CLOEXEC));
  session::EventFlow flow;
  session::Session session({.plan = plan,
                            .sources = {file.get()},
                            .numbers = numbers,
                            .sink = *sink,
                            .flow = flow,
                            .epoch_ns = lowered.clock.epoch_ns});
  CLEW_TRY(session.begin());
  CLEW_TRY(session.answer(stop.get()));
  CLEW_TRY(session.stop());
  return session.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const uint8_t> bytes(data, size);
  const char* const question = kQuestions[take<uint8_t>(bytes) % kQuestions.size()];
  const std::string_view note = take_note(bytes);
  const size_t shapes = shapes_in(note);
  const FileDescriptor file(memfd_create("events", MFD_CLOEXEC));
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  const std::vector<collect::EventWords> words(shapes, {.least = 0, .most = kWordsMax});
  auto writer =
      collect::SpillWriter::create(path, {.event_words = words, .note = std::string(note)});
  CLEW_ASSERT(writer.has_value());
  write_events(*writer, bytes, shapes);
  CLEW_ASSERT(writer->finish(note).has_value());
  (void)answer(path, question);
  return 0;
}
