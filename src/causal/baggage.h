// SPDX-License-Identifier: Apache-2.0
// What a request carries along: for each query the tuples that its events can join with, as Pivot
// Tracing has it (Mace, Roelke, Fonseca, SOSP 2015, section 5). A branch of the request sees what
// was packed before, by cause, and nothing else:
//
//     Baggage request({.id = …, .expires_s = …});
//     request.pack(bag, tie, fields, faults);
//     Baggage other = request.branch(faults);     // For another thread, or a message.
//     …
//     request.join(other, faults);                // It came back.
//     request.receive(message, faults);           // So did one from another process.
//
// Each `Baggage` is one branch, which ends in `join`, `hand_over` or `discard`; a copy is the same
// branch twice. What is sent is a new branch, or one that is handed over: it has had an event that
// nobody else has seen. So a message that comes again is known for what it is ("stale"), and only
// its sets are looked at. If two have run what was one message, sums cannot be told apart any more:
// then those of the branch that receives the other stay, and the result says so (`ran_twice`; of
// two runs with as many events the second is stale). Sets are right in any case.
//
// A branch keeps its active sums (causal/sum.h), and what it makes gets them frozen: so a branch
// that ends somewhere else leaves nothing here.
//
// Room is limited: kBodyBytesMax a bag, kBaggageBytesMax in all, kBagsMax bags. A bag that gets too
// large, and the bags of the lowest priority where all of them are too large, go whole; their heads
// stay and say that something is missing, in every branch that they come to. Who packs or unpacks
// such a bag learns that the query is answered another way in this request (`Outcome::EmitOnly`).
// So do all sums, where stamps get too large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "causal/bags.h"
#include "causal/set.h"
#include "causal/stamp.h"
#include "causal/sum.h"

namespace clew::causal {

// On the wire, without the authentication.
inline constexpr size_t kBaggageBytesMax = 4096;
inline constexpr size_t kBaggageBytesSoft = 1024;
// From this priority on a bag may use more than the soft limit.
inline constexpr uint8_t kHighPriority = 128;
inline constexpr uint64_t kNumberMax = uint64_t{1} << 56;

enum class Outcome : uint8_t {
  Done,
  EmitOnly,  // Not in this request: the bag has overflowed. Emit the event instead.
};

// What went wrong, of all branches that somebody handles.
struct Faults {
  uint64_t ran_twice = 0;      // Received what somebody else has run, too.
  uint64_t stale = 0;          // Received what had come before.
  uint64_t overflowed = 0;     // Bags that lost what they held.
  uint64_t other_request = 0;  // Received a branch of another request: nothing happened.

  friend bool operator==(const Faults&, const Faults&) = default;
};

// How large baggage may be.
struct Room {
  size_t soft_bytes = kBaggageBytesSoft;  // With bags of low priority.
  size_t hard_bytes = kBaggageBytesMax;
};

struct Request {
  uint64_t id = 0;         // Not 0.
  uint32_t expires_s = 0;  // Since 1970; nobody takes it from another machine after that.
  // Some query packs sums, so branches get stamps. If not, they are smaller, and whoever adds to a
  // sum nevertheless is told to emit.
  bool has_sums = true;
};

class Baggage {
 public:
  // All there is to it. `wire` makes and reads it.
  struct Contents {
    uint64_t request = 0;
    uint32_t expires_s = 0;
    bool lost_bags = false;   // Even heads are missing, so nobody knows whose.
    bool emits_sums = false;  // No sums any more. Then there is no stamp.
    bool ran_twice = false;
    uint64_t n = 0;  // Of the last tuple that was packed, in what this branch has seen.
    Stamp stamp;     // Anonymous: no sums.
    Bags bags;
  };

  // Of no request: it has nothing, cannot be packed into, and is 0 bytes on the wire.
  Baggage() = default;
  explicit Baggage(const Request& request);
  // Contents of a branch that has come from elsewhere. They must be right (causal/wire.h).
  explicit Baggage(const Contents& contents);

  [[nodiscard]] bool is_empty() const { return contents_.request == 0; }
  [[nodiscard]] const Contents& contents() const { return contents_; }
  [[nodiscard]] size_t size_bytes() const;

  // Packs a tuple, which becomes number n of the contents, emitted or not. Branches that may not
  // know of each other need different ties. A bag's kind and `keep` must always be the same.
  Outcome pack(const Bag& bag, uint32_t tie, std::span<const std::byte> fields, Faults& faults);
  // Adds to a group of a sum: as many cells as operations, and always the same operations.
  Outcome add(const Bag& bag, std::span<const CellOperation> operations, const Group& group,
              Faults& faults);

  // The tuples of a set, in the order of its bytes; they are valid up to the next change.
  Outcome unpack(const BagName& name, TupleReader& tuples) const;
  // The value of a sum, likewise.
  Outcome unpack(const BagName& name, Groups& value) const;

  // Another branch, which has seen the same. If its stamp would pass a limit its sums are emitted.
  [[nodiscard]] Baggage branch(Faults& faults);
  // This branch as it goes on elsewhere; here it ends.
  [[nodiscard]] Baggage hand_over(Faults& faults);
  // Ends another branch of this process here.
  void join(Baggage& other, Faults& faults) { receive(other.hand_over(faults), faults); }
  // Ends a branch here that was sent, and may come more than once.
  void receive(const Baggage& other, Faults& faults);
  // Ends this branch without telling anybody.
  void discard() { *this = Baggage(); }
  // Drops bags until the rest has room.
  void trim(const Room& room, Faults& faults);

 private:
  enum class Meeting : uint8_t;

  [[nodiscard]] bool has_stamp() const { return !contents_.stamp.id.is_anonymous(); }
  [[nodiscard]] Meeting meet(const Baggage& other) const;
  void merge_bags(const Baggage& other, Meeting meeting, Faults& faults);
  void merge_bag(const Bags::Place& ours, const Baggage& other, Meeting meeting, Faults& faults);
  Outcome pack_into(const Bags::Place& place, const Bag& bag, bool fits, const Body& body,
                    Faults& faults);
  // False: the bag is not to be used here.
  [[nodiscard]] bool can_pack(const Bags::Place& place, const Bag& bag) const;
  void overflow(const Bags::Place& place, Faults& faults);
  bool drop_lowest(unsigned priority_end, Faults& faults);
  void remove_lowest();
  void give_up_sums(Faults& faults);
  [[nodiscard]] bool fork_into(Baggage& child);
  void freeze_sums(const Freezing& freezing, Faults& faults);

  Contents contents_;
  // What the active sums were frozen as for the last branch, while nothing has been added since.
  // Height 0: they have to be frozen anew.
  Freezing frozen_;
  // Of its id in the beginning. The more it has given away since, the smaller are the next parts: a
  // request that goes from one to the next uses one level for each, and one that sends a hundred
  // messages not a hundred levels.
  unsigned depth_ = kDepthMax;
};

}  // namespace clew::causal
