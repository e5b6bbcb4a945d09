// SPDX-License-Identifier: Apache-2.0
// A join by time of two streams of rows: each left row with each right one that has an equal key
// and a time near enough, or with the first or last few of these. Rows come in any order. Both
// sides are held until no partner can come any more, as whoever gives the rows says (pass()), and
// are found by their key. Where partners are chosen, a left row waits until all have come.
//
// What is held and what is done for one row is bounded. What that leaves out is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "aggregate/value.h"
#include "stream/held_rows.h"

namespace clew::stream {

enum class Side : uint8_t {
  Either,
  Before,  // The right row is not later than the left one,
  After,   // or not earlier.
};

// Which of a left row's partners it is joined with.
enum class Choice : uint8_t { All, First, Last };

struct TemporalShape {
  size_t left_width = 0;
  size_t right_width = 0;
  size_t left_moments = 1;  // A left row may have been joined of several events.
  size_t left_of = 0;       // Which of them is compared.
  size_t keys = 1;
  uint64_t within_ns = 0;
  Side side = Side::Either;
  bool is_outer =
      false;  // A left row without partner is given, too, without anything on the right.
  Choice choice = Choice::All;
  size_t count = 1;  // How many are chosen.
};

struct TemporalLimits {
  size_t held = 1'000'000;  // Rows of a side. The first are forgotten.
  size_t looks = 20'000;    // At rows with a left row's key, to choose from them.
};

// What one row may cost, over all joins that it goes through.
struct Budget {
  size_t rows = 1'000;
  size_t looks = 20'000;  // At rows with its key.
  bool is_cut = false;    // It was not enough.
};

// What comes out: the left row's values, then the right one's, and the moments of both.
class JoinedRows {
 public:
  JoinedRows() = default;
  JoinedRows(const JoinedRows&) = delete;
  JoinedRows& operator=(const JoinedRows&) = delete;
  virtual ~JoinedRows() = default;
  virtual void joined(std::span<const aggregate::Value> row, std::span<const Moment> moments) = 0;
};

class TemporalJoin {
 public:
  // Borrows `into`.
  TemporalJoin(TemporalShape shape, TemporalLimits limits, JoinedRows& into);

  // A key with a part that is null equals none.
  void take_left(std::span<const aggregate::Value> row, std::span<const Moment> moments,
                 std::span<const aggregate::Value> key, Budget& budget);
  void take_right(std::span<const aggregate::Value> row, Moment moment,
                  std::span<const aggregate::Value> key, Budget& budget);

  // All left and all right rows of times before these have come. Gives what has waited for that,
  // `most` rows of it, which is counted down; false: there may be more.
  bool pass(int64_t left_until, int64_t right_until, size_t& most);
  // The same, and nothing comes any more.
  bool drain(size_t& most);

  [[nodiscard]] size_t held() const { return left_.size() + right_.size(); }
  [[nodiscard]] size_t bytes() const { return left_.bytes() + right_.bytes(); }
  // Rows that were forgotten before their time.
  [[nodiscard]] uint64_t forgotten() const { return forgotten_; }
  // Left rows whose partners were too many to choose from: they are not given.
  [[nodiscard]] uint64_t unchosen() const { return unchosen_; }

 private:
  // When a partner of a row may be, from its own time on.
  [[nodiscard]] uint64_t reach(Side none) const {
    return shape_.side == none ? 0 : shape_.within_ns;
  }
  void hold(HeldRows& side, const HeldRows::Row& row, bool is_joined);
  struct Wanted {
    std::span<const aggregate::Value> key;
    uint64_t hash = 0;
    uint64_t number = 0;  // Of the event that looks, which is not joined with itself.
    int64_t first_ns = 0;
    int64_t last_ns = 0;
  };
  void find(const HeldRows& side, size_t moment, const Wanted& wanted, Budget& budget);
  [[nodiscard]] bool chooses() const { return shape_.choice != Choice::All; }
  bool choose(const Wanted& wanted);
  void set_left(std::span<const aggregate::Value> row, std::span<const Moment> moments);
  void read_left(uint32_t place);
  void give_found();
  void give_nothing();
  bool give_held(uint32_t place, size_t& most);
  bool give_chosen(uint32_t place, size_t& most);

  TemporalShape shape_;
  TemporalLimits limits_;
  JoinedRows& into_;
  uint64_t seed_;
  HeldRows left_;
  HeldRows right_;
  uint64_t forgotten_ = 0;
  uint64_t unchosen_ = 0;
  int64_t right_forgotten_ns_ = std::numeric_limits<int64_t>::min();  // The latest of them.
  // In the making.
  std::vector<aggregate::Value> row_;
  std::vector<aggregate::Value> key_;
  std::vector<Moment> moments_;
  std::vector<uint32_t> found_;
};

}  // namespace clew::stream
