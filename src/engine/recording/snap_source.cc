// SPDX-License-Identifier: Apache-2.0
#include "engine/recording/snap_source.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "answer/no_names.h"
#include "base/assert.h"
#include "plan/held.h"
#include "query/fields.h"
#include "query/print.h"
#include "query/recording_fields.h"
#include "query/walk.h"
#include "recorder/show.h"
#include "recorder/snap_clock.h"

namespace clew::engine {

using aggregate::Value;
using query::RecordedKind;
using query::RecordingField;

namespace {

constexpr size_t kRoundEvents = 1024;

constexpr int64_t kNoTime = INT64_MIN;

// What the words of an event are.
struct Words {
  uint64_t file = 0;  // In SnapSource::files_.
  uint64_t place = 0;
  uint64_t frame = 0;  // Of the place.
  uint64_t address = 0;
  int64_t depth = 0;
  uint64_t order = 0;
  uint64_t marks = 0;
  uint64_t caller = 0;  // A place, or kNoCaller.
  int64_t after = kNoTime;
  int64_t before = kNoTime;
};
using RawWords = std::array<uint64_t, sizeof(Words) / sizeof(uint64_t)>;
constexpr uint64_t kNoCaller = UINT64_MAX;

Words words_of(const collect::Event& event) {
  RawWords raw{};
  CLEW_ASSERT(event.words.size() == raw.size());
  std::copy(event.words.begin(), event.words.end(), raw.begin());
  return std::bit_cast<Words>(raw);
}

RecordedKind kind_of(recorder::EventKind kind) {
  switch (kind) {
    case recorder::EventKind::Block:
      return RecordedKind::Block;
    case recorder::EventKind::Line:
      return RecordedKind::Line;
    case recorder::EventKind::Call:
      return RecordedKind::Call;
    case recorder::EventKind::Return:
      return RecordedKind::Return;
    case recorder::EventKind::Exception:
      return RecordedKind::Exception;
    case recorder::EventKind::Signal:
      return RecordedKind::Signal;
  }
  return RecordedKind::Block;
}

// The file name by which its program was started.
std::string_view program_of(const recorder::Snap& snap) {
  return snap.command.empty() ? std::string_view() : recorder::file_of(snap.command[0]);
}

// All that events of recordings hold, by the names of their normal form.
std::vector<plan::HeldCapture> held_by_recordings(const query::Query& query) {
  std::vector<plan::HeldCapture> held;
  const auto add = [&](query::Field field, uint16_t index, const query::Type& type) {
    query::Expression meaning;
    meaning.kind = query::ExpressionKind::Field;
    meaning.field = field;
    meaning.index = index;
    meaning.type = type;
    held.push_back({.text = query::print(meaning, query), .meaning = meaning});
  };
  for (const query::Field field : query::plain_recording_fields())
    add(field, 0, query::info(field).type);
  for (const query::RecordingFieldInfo& own : query::recording_fields())
    add(query::Field::Argument, static_cast<uint16_t>(own.field), own.type);
  return held;
}

void put_time(int64_t time_ns, Value& into) {
  into = {};
  if (time_ns != kNoTime) into = time_ns;
}

void put_text(std::string_view text, Value& into) {
  if (auto* const known = std::get_if<std::string>(&into)) {
    known->assign(text);
  } else {
    into.emplace<std::string>(text);
  }
}

}  // namespace

Expected<std::unique_ptr<SnapSource>> SnapSource::open(const plan::Plan& plan, Notices& notices) {
  auto made = std::make_unique<SnapSource>(plan, notices);
  const auto& sources = plan.query.sources;
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto known = std::find_if(made->files_.begin(), made->files_.end(),
                                    [&](const auto& one) { return one->path == sources[i].file; });
    if (known == made->files_.end()) {
      made->files_.push_back(std::make_unique<File>());
      made->files_.back()->path = sources[i].file;
      made->files_.back()->snap = CLEW_TRY(recorder::read_snap(sources[i].file));
      made->files_.back()->sources = {static_cast<uint16_t>(i)};
    } else {
      (*known)->sources.push_back(static_cast<uint16_t>(i));
    }
    made->probes_.push_back(sources[i].label.empty() ? query::print(sources[i]) : sources[i].label);
  }
  return made;
}

Expected<std::string> SnapSource::describe(const plan::Plan& plan) {
  std::string text;
  std::vector<std::string_view> told;
  for (const query::Source& source : plan.query.sources) {
    if (std::find(told.begin(), told.end(), source.file) != told.end()) continue;
    told.push_back(source.file);
    const recorder::Snap snap = CLEW_TRY(recorder::read_snap(source.file));
    const auto recorded =
        std::count_if(snap.modules.begin(), snap.modules.end(),
                      [](const recorder::SnapModule& module) { return module.id_count != 0; });
    text += fmt::format(
        "  {}: process {} ({}){}, threads: {}, recorded modules: {}\n", source.file, snap.pid,
        fmt::join(snap.command, " "),
        snap.reason.signal == 0 ? std::string() : ", " + recorder::signal_name(snap.reason.signal),
        snap.threads.size(), recorded);
  }
  return text;
}

Expected<void> SnapSource::prepare(const query::Reporter& report, session::Numbers& numbers) {
  plan::Captured captured =
      CLEW_TRY(plan::capture_held(plan_, held_by_recordings(plan_.query), report));
  captures_ = captured.captures;
  std::vector<bool> is_needed(captures_.size(), false);
  for (const auto* list : {&captured.filters, &captured.values, &captured.arguments}) {
    for (const query::Expression& root : *list) {
      query::visit(root, [&](const query::Expression& node) {
        if (node.kind == query::ExpressionKind::Input) is_needed[node.index] = true;
      });
    }
  }
  for (size_t i = 0; i < is_needed.size(); ++i) {
    if (is_needed[i]) needed_.push_back(i);
  }
  lowered_.form = plan::StateForm::Events;
  lowered_.clock = {.tick_multiplier = 1};
  names_ = std::make_unique<answer::NoNames>();
  intake_ =
      std::make_unique<answer::Intake>(plan_, lowered_, grouping_, *names_, std::move(captured));
  captured_.emplace(captures_.size());
  (void)numbers.next(*this);
  return {};
}

// --- from snaps to events ------------------------------------------------------------------------

Expected<void> SnapSource::read_events(collect::EventBatch& round) {
  while (round.size() < kRoundEvents && at_ != files_.size()) {
    File& file = *files_[at_];
    if (!file.modules) begin_file(file);
    if (!events_) {
      if (file.thread == file.snap.threads.size()) {
        end_file(file);
        ++at_;
        continue;
      }
      begin_thread(file);
    }
    const auto event = events_->next();
    if (event) {
      push(file, *event, round);
    } else {
      events_.reset();
    }
  }
  return {};
}

void SnapSource::begin_file(File& file) {
  file.modules = std::make_unique<recorder::SnapModules>(
      file.snap, [this](std::string_view text) { notices_.progress(text); });
  notices_.progress("");
  file.places = std::make_unique<recorder::Places>(*file.modules);
  for (const std::string& problem : file.modules->problems())
    losses_.lost.push_back(fmt::format("{}: {}", file.path, problem));
}

void SnapSource::begin_thread(File& file) {
  const recorder::SnapThread& thread = file.snap.threads[file.thread++];
  history_ = std::make_unique<recorder::History>(*file.modules, *file.places, file.snap, thread);
  thread_ = thread.thread;
  const recorder::Walk& walk = history_->walked();
  file.violations += walk.violations;
  file.gaps += walk.gaps;
  if (walk.is_cut) {
    losses_.lost.push_back(
        fmt::format("{}: thread {} is cut after {} blocks", file.path, thread_, walk.steps.size()));
  }
  events_ = std::make_unique<recorder::ThreadEvents>(
      *file.modules, *file.places, *history_,
      recorder::ThreadEvents::Options{
          .lines = wants(file, RecordedKind::Line),
          .got_signal = file.snap.reason.signal != 0 && is_reason(file.snap, thread)});
}

void SnapSource::end_file(File& file) {
  if (file.violations == 0 && file.gaps == 0) return;
  losses_.lost.push_back(
      fmt::format("{}: {} records fit no path, {} gaps", file.path, file.violations, file.gaps));
}

bool SnapSource::wants(const File& file, RecordedKind kind) const {
  return std::any_of(file.sources.begin(), file.sources.end(),
                     [&](uint16_t source) { return plan_.query.sources[source].recorded == kind; });
}

void SnapSource::push(const File& file, const recorder::ThreadEvent& event,
                      collect::EventBatch& round) const {
  const recorder::Place& place = (*file.places)[event.place];
  const recorder::SpanNs began =
      recorder::SnapClock(file.snap).ns_of(history_->began(event.order == 0 ? 0 : event.order - 1));
  const auto words =
      std::bit_cast<RawWords>(Words{.file = at_,
                                    .place = event.place,
                                    .frame = event.is_of_activation ? place.frames.size() - 1 : 0,
                                    .address = event.address,
                                    .depth = event.depth,
                                    .order = event.order,
                                    .marks = event.marks,
                                    .caller = event.caller ? uint64_t{*event.caller} : kNoCaller,
                                    .after = began.after.value_or(kNoTime),
                                    .before = began.before.value_or(kNoTime)});
  for (const uint16_t source : file.sources) {
    if (plan_.query.sources[source].recorded != kind_of(event.kind)) continue;
    round.push({.shape = source, .tid = static_cast<uint32_t>(thread_), .words = words});
  }
}

// --- from events to rows -------------------------------------------------------------------------

void SnapSource::take_events(const collect::EventBatch& events, collect::EventRange range,
                             answer::RowBatch& rows) {
  captured_->clear();
  for (size_t i = range.begin; i < range.end; ++i) {
    const collect::Event event = events.at(i);
    const std::span<Value> row = captured_->add();
    for (const size_t capture : needed_)
      read(captures_[capture], event, row[capture]);
  }
  intake_->take_captured(*captured_, rows);
}

void SnapSource::read(const query::Expression& capture, const collect::Event& event,
                      Value& into) const {
  const Words words = words_of(event);
  const File& file = *files_[words.file];
  const recorder::Place& place = (*file.places)[static_cast<uint32_t>(words.place)];
  const recorder::Frame& frame = place.frames[words.frame];
  switch (capture.field) {
    case query::Field::Pid:
      into = int64_t{file.snap.pid};
      return;
    case query::Field::Tid:
      into = static_cast<int64_t>(event.tid);
      return;
    case query::Field::ProcName:
      return put_text(program_of(file.snap), into);
    case query::Field::Function:
      return put_text(frame.function, into);
    case query::Field::Module:
      return put_text(place.module, into);
    case query::Field::Probe:
      return put_text(probes_[event.shape], into);
    case query::Field::Argument:
      return read_own(static_cast<RecordingField>(capture.index), event, into);
    case query::Field::Time:  // capture_held() adds it; no expression can name it, nor the others.
    case query::Field::Cpu:
    case query::Field::Comm:
    case query::Field::Host:
    case query::Field::NodeName:
    case query::Field::Container:
    case query::Field::Unit:
    case query::Field::ControlGroup:
    case query::Field::User:
    case query::Field::Uid:
    case query::Field::Caller:
    case query::Field::Stack:
    case query::Field::UserStack:
    case query::Field::KernelStack:
    case query::Field::ReturnValue:
    case query::Field::Elapsed:
    case query::Field::EntryArgument:
      into = {};
  }
}

void SnapSource::read_own(RecordingField field, const collect::Event& event, Value& into) const {
  const Words words = words_of(event);
  const File& file = *files_[words.file];
  const recorder::Places& places = *file.places;
  const recorder::Frame& frame = places[static_cast<uint32_t>(words.place)].frames[words.frame];
  switch (field) {
    case RecordingField::File:
      return put_text(frame.file, into);
    case RecordingField::Line:
      into = uint64_t{frame.line};
      return;
    case RecordingField::Address:
      into = words.address;
      return;
    case RecordingField::Depth:
      into = words.depth;
      return;
    case RecordingField::Order:
      into = words.order;
      return;
    case RecordingField::Inlined:
      into = int64_t{frame.is_inlined ? 1 : 0};
      return;
    case RecordingField::Uncertain:
      into = int64_t{(words.marks & recorder::kMissing) != 0 ? 1 : 0};
      return;
    case RecordingField::Caller: {
      if (words.caller == kNoCaller) return put_text({}, into);
      const recorder::Place& caller = places[static_cast<uint32_t>(words.caller)];
      return put_text(caller.frames.back().function, into);
    }
    case RecordingField::Signal:
      return put_text(recorder::signal_name(file.snap.reason.signal), into);
    case RecordingField::After:
      return put_time(words.after, into);
    case RecordingField::Before:
      return put_time(words.before, into);
  }
}

}  // namespace clew::engine
