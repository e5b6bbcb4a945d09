// SPDX-License-Identifier: Apache-2.0
// Snaps as the source of a session. Threads are reconstructed one by one, as `clew show` does it,
// and given away in rounds: what is in memory is one thread's history at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer/intake.h"
#include "answer/names.h"
#include "answer/row_batch.h"
#include "base/error.h"
#include "engine/run.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "query/diagnostic.h"
#include "query/recording_fields.h"
#include "recorder/events.h"
#include "recorder/history.h"
#include "recorder/places.h"
#include "recorder/snap.h"
#include "recorder/snap_modules.h"
#include "session/numbers.h"
#include "session/source.h"

namespace clew::engine {

class SnapSource final : public session::Source {
 public:
  // Reads all snaps that the plan's sources name; both arguments are borrowed. Errors: those of
  // recorder::read_snap.
  static Expected<std::unique_ptr<SnapSource>> open(const plan::Plan& plan, Notices& notices);
  // A line for each snap. Errors: the same.
  static Expected<std::string> describe(const plan::Plan& plan);
  // For open().
  SnapSource(const plan::Plan& plan, Notices& notices) : plan_(plan), notices_(notices) {}

  // Errors: InvalidQuery, with place, for what a recording does not hold, such as memory.
  Expected<void> prepare(const query::Reporter& report, session::Numbers& numbers);

  [[nodiscard]] bool gone() const override { return at_ == files_.size(); }
  std::chrono::nanoseconds patience() override { return {}; }
  [[nodiscard]] bool has_events() const override { return true; }
  [[nodiscard]] bool is_in_order() const override { return true; }
  [[nodiscard]] uint64_t now() const override { return 0; }
  Expected<void> read_events(collect::EventBatch& round) override;
  void take_events(const collect::EventBatch& events, collect::EventRange range,
                   answer::RowBatch& rows) override;
  uint64_t passed() override { return intake_->passed(); }
  Expected<aggregate::Table> interval() override { return total(); }
  Expected<aggregate::Table> total() override { return intake_->counted(); }
  // Modules that could not be used, and records that are none.
  collect::Losses losses() override { return losses_; }

 private:
  // One snap, and the sources of the query that ask it. What is reconstructed is there from its
  // first event on.
  struct File {
    std::string path;
    recorder::Snap snap;
    std::vector<uint16_t> sources;
    std::unique_ptr<recorder::SnapModules> modules;
    std::unique_ptr<recorder::Places> places;
    size_t thread = 0;  // The next one, in Snap::threads.
    uint64_t violations = 0;
    uint64_t gaps = 0;
  };

  void begin_file(File& file);
  void begin_thread(File& file);
  void end_file(File& file);
  void push(const File& file, const recorder::ThreadEvent& event, collect::EventBatch& round) const;
  [[nodiscard]] bool wants(const File& file, query::RecordedKind kind) const;
  void read(const query::Expression& capture, const collect::Event& event,
            aggregate::Value& into) const;
  void read_own(query::RecordingField field, const collect::Event& event,
                aggregate::Value& into) const;

  const plan::Plan& plan_;
  Notices& notices_;
  std::vector<std::unique_ptr<File>> files_;
  size_t at_ = 0;                               // In files_.
  std::unique_ptr<recorder::History> history_;  // Of the thread in front of File::thread.
  std::unique_ptr<recorder::ThreadEvents> events_;
  int32_t thread_ = 0;
  collect::Losses losses_;

  plan::Lowered lowered_;
  plan::Grouping grouping_;
  std::unique_ptr<answer::Names> names_;
  std::vector<std::string> probes_;          // By source of the query.
  std::vector<query::Expression> captures_;  // What a row has; those that nobody needs are null.
  std::vector<size_t> needed_;               // In captures_.
  std::unique_ptr<answer::Intake> intake_;
  std::optional<answer::RowBatch> captured_;
};

}  // namespace clew::engine
