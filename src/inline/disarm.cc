// SPDX-License-Identifier: Apache-2.0
// disarm: probes of a session that goes on with its others. A layer without a body that is wanted
// leaves its site as it would with its session, unless a thread does not leave it. Where it stays,
// or other probes need it, the body is jumped over:
//
//     mov r13d, fuel   →   jmp end ; nop
//
// Only bodies with loops begin so (rule R10 of the verifier), and only these run out of fuel. No
// thread stands between the bytes of one instruction, and one behind it goes on to the body's end.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "base/log.h"
#include "code/opcodes.h"
#include "inline/attachment_state.h"
#include "inline/forked_children.h"
#include "inline/removal.h"

namespace clew::inline_ {
namespace {

constexpr std::array<uint8_t, 2> kFuelLoad = {0x41, 0xbd};  // mov r13d, imm32

// What is to be done, found before the stop.
struct Leave {
  std::set<uint32_t> layers;           // Of the journal.
  std::vector<InstalledBody*> bodies;  // Those that end, also in these: they may have to stay.
};

Leave find_leave(Attachment::State& state, std::span<const uint64_t> bodies) {
  Leave leave;
  std::set<uint64_t> changed;
  for (const uint64_t address : bodies) {
    const auto next = state.bodies.upper_bound(address);
    if (next != state.bodies.begin()) changed.insert(std::prev(next)->first);
  }
  const auto ends = [&](const InstalledBody& body) {
    return body.is_disarmed ||
           std::find(bodies.begin(), bodies.end(), body.address) != bodies.end();
  };
  for (const uint64_t address : changed) {
    const auto layer = state.journal->layer_at(address);
    if (!layer) continue;
    std::vector<InstalledBody>& of_layer = state.bodies.at(address);
    if (std::all_of(of_layer.begin(), of_layer.end(), ends)) leave.layers.insert(*layer);
    for (InstalledBody& body : of_layer) {
      if (ends(body)) leave.bodies.push_back(&body);
    }
  }
  return leave;
}

void jump_over(const Attachment::State& state, const InstalledBody& body) {
  uint8_t* const code = state.arena.code_at(body.address, body.size_bytes);
  std::array<uint8_t, 8> first{};
  const bool has_loops = code != nullptr && body.size_bytes >= first.size() &&
                         std::equal(kFuelLoad.begin(), kFuelLoad.end(), code);
  if (!has_loops) return;
  const uint32_t distance = body.size_bytes - code::kJumpRel32Bytes;
  std::memcpy(first.data(), code, first.size());
  first[0] = code::kJumpRel32;
  std::memcpy(&first[1], &distance, sizeof distance);
  first[code::kJumpRel32Bytes] = code::kNop;
  // In one store: a tracer that is killed leaves the load or the jump.
  uint64_t word = 0;
  std::memcpy(&word, first.data(), sizeof word);
  std::memcpy(code, &word, sizeof word);
}

}  // namespace

Expected<DetachReport> Attachment::disarm(std::span<const uint64_t> bodies) {
  if (!state_->attached || state() != TargetState::Running) return DetachReport{};
  const ProcessLock::Hold hold = CLEW_TRY(state_->lock->hold_to_leave());
  const ArenaLock lock = CLEW_TRY(ArenaLock::take(state_->arena));
  state_->journal.emplace(state_->arena);
  const Leave leave = find_leave(*state_, bodies);
  Removal removal(state_->arena, *state_->journal, {.layers = leave.layers});
  removal.look_for_resting_frames(state_->pid, state_->gadgets.restorer);
  ForkedChildren children(state_->arena, state_->pid);
  const std::vector<pid_t> known = children.look();
  for (const pid_t child : known)
    removal.look_for_resting_frames(child, state_->gadgets.restorer);
  children.stop(known, state_->options.stop_timeout);
  StoppedTarget target = CLEW_TRY(stop_target(state_->pid, state_->options.stop_timeout));
  if (!children.stop_those_in_between()) {
    return fail(ErrorCode::Io,
                fmt::format("not all forked children of process {} can be stopped", state_->pid));
  }
  target.use_gadgets(state_->gadgets);
  for (InstalledBody* body : leave.bodies) {
    jump_over(*state_, *body);
    body->is_disarmed = true;
  }
  bool stays = false;
  for (StoppedTarget& child : children.stopped()) {
    const auto left = removal.run(child);
    stays = stays || !left || left->residue;
  }
  const DetachReport report = CLEW_TRY(removal.run(target));
  target.resume();
  state_->note_stop(target);
  children.resume();
  log_stop(target, "take out single probes");
  if (!report.residue && !stays) removal.forget();
  return report;
}

}  // namespace clew::inline_
