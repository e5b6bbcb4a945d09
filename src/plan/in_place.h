// SPDX-License-Identifier: Apache-2.0
// A query with joins by cause, answered where its events happen: what a joined stream brings is
// packed into the context of the thread's request, handed over with it, and unpacked at the later
// event, which is counted in its probe (Pivot Tracing, sections 3 and 4). It becomes a query of the
// events of `from` alone, which reads what is packed as JoinColumn; programs at the other sources
// pack, or act on contexts (abi/region.h, ContextLayout).
//
// Nothing leaves the process but the answer. Contexts stay in it, too: those that other processes,
// messages or new threads would bring are not there. What is asked is the same (answer/joins.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "abi/accessor.h"
#include "abi/region.h"
#include "base/error.h"
#include "causal/edge.h"
#include "plan/joined.h"
#include "query/diagnostic.h"
#include "query/query.h"

namespace clew::plan {

// What the program at a source does.
struct Duty {
  enum class Kind : uint8_t { Answer, Pack, Act };
  Kind kind = Kind::Answer;
  uint16_t bag = 0;                             // Pack
  abi::ContextAct act = abi::ContextAct::Lose;  // Act
  causal::EdgeClass how = causal::EdgeClass::Explicit;
  bool is_weak = false;  // Known less well than the query asks for.
  // As the source has them. Pack: the columns of the bag, but for its number. Act: the object, if
  // it has one. Answer: what must not be 0, as its bag would be empty.
  std::vector<query::Expression> operands{};
  std::vector<query::Aggregate> cells{};  // Pack, of BagKind::Cells, instead of operands.
  std::optional<query::Expression> condition = std::nullopt;  // Other hits are no such events.
};

// Where a joined stream is packed: its first event, the most recent one, or cells. Its columns are
// those of JoinColumn with stream = the bag + 1.
struct Bag {
  abi::BagKind kind = abi::BagKind::First;
  std::vector<uint32_t> column_words;  // Where each column begins; the first is its number.
  uint32_t words = 2;                  // With number and time (abi/region.h).

  // Of what it has of events.
  [[nodiscard]] uint32_t packed_bytes() const {
    return 8 * (words - (kind == abi::BagKind::Cells ? 1 : 2));
  }
};

// What programs of joins in place count for `explain --run`, by source.
enum class DutyCounter : uint32_t {
  Events,     // That pass the condition.
  InRequest,  // Of them. Pack and Answer.
  Done,       // Packed; unpacked; acted, and a take or join found what was handed over.
  Passed,     // Of what was unpacked: the conditions on joined rows. Answer.
};
inline constexpr uint32_t kDutyCounters = 4;

struct Contexts {
  std::vector<Duty> duties;  // By source; none: the query has no joins in place.
  std::vector<Bag> bags;
  bool are_counted = false;  // DutyCounter

  [[nodiscard]] bool answers(uint16_t source) const {
    return duties.empty() || duties[source].kind == Duty::Kind::Answer;
  }
  [[nodiscard]] bool are_joined() const;     // By an act.
  [[nodiscard]] uint32_t bag_words() const;  // Of the largest.
  [[nodiscard]] uint64_t kinds() const;      // As ContextAct takes them.
};

struct InPlace {
  query::Query query;  // Its sources are those of Joined::events.
  Contexts contexts;
};

// Whether the object of an act is known at each hit: not when it is read from memory, or noted at
// the entry of the call, where a hit could be missed, and others be wrong.
bool is_known_at_hit(const query::Expression& object);

struct Plan;
// Errors: InvalidQuery, where groups are not counted in probes, so that all their events would
// come.
Expected<void> check_in_place(const Plan& plan, const query::Reporter& report);

// Errors: InvalidQuery with place, and the reason why it cannot be answered so.
Expected<InPlace> in_place(const Joined& joined, const query::Reporter& report);

}  // namespace clew::plan
