// SPDX-License-Identifier: Apache-2.0
// A file of events (collect/spill.h) that an earlier session wrote, as the source of a session.
// What is in it may be anything: it can be damaged, cut off, or made up.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "answer/intake.h"
#include "base/error.h"
#include "collect/spill.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "plan/sites.h"
#include "query/diagnostic.h"
#include "session/numbers.h"
#include "session/recording.h"
#include "session/source.h"

namespace clew::session {

class RecordedFile final : public Source {
 public:
  // Reads the whole file once: its last frame has names that the first one could not have. Errors:
  // InvalidQuery when it is no file of events, Io.
  static Expected<std::unique_ptr<RecordedFile>> open(const std::string& path);
  // For open().
  RecordedFile(std::string path, Recording recording, collect::SpillReader reader)
      : path_(std::move(path)), recording_(std::move(recording)), reader_(std::move(reader)) {}

  [[nodiscard]] const Recording& recording() const { return recording_; }
  // It has its end, and no frame is damaged.
  [[nodiscard]] bool is_whole() const { return is_whole_; }
  // What its events mean to a plan, whose sources and expressions they have to hold. Borrows all of
  // them. `numbers` are those of a session with this source alone. Errors: InvalidQuery, with
  // place.
  Expected<void> prepare(const plan::Plan& plan, const plan::Lowered& lowered,
                         const plan::Grouping& grouping, const query::Reporter& report,
                         Numbers& numbers);

  [[nodiscard]] bool gone() const override { return is_at_end_; }
  std::chrono::nanoseconds patience() override { return {}; }
  [[nodiscard]] bool has_events() const override { return true; }
  [[nodiscard]] bool is_in_order() const override { return true; }
  [[nodiscard]] uint64_t now() const override { return 0; }
  Expected<void> read_events(collect::EventBatch& round) override;
  void take_events(const collect::EventBatch& events, collect::EventRange range,
                   answer::RowBatch& rows) override;
  uint64_t passed() override;
  Expected<aggregate::Table> interval() override;
  Expected<aggregate::Table> total() override;
  // Of the recording session, and what is damaged or cut off, with its place.
  collect::Losses losses() override;

 private:
  Expected<void> find_wanted(const query::Query& query, const query::Reporter& report);

  std::string path_;
  Recording recording_;
  collect::SpillReader reader_;
  bool is_at_end_ = false;
  bool is_whole_ = false;
  std::vector<bool> wanted_;  // By shape.
  std::vector<std::unique_ptr<RecordedNames>> names_;
  std::vector<std::unique_ptr<answer::Intake>> intakes_;  // By process of the recording.
};

}  // namespace clew::session
