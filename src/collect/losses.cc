// SPDX-License-Identifier: Apache-2.0
#include "collect/losses.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace clew::collect {

void Losses::merge(const Losses& other) {
  for (const auto& [cause, count] : other.missed)
    count_cause(missed, cause, count);
  for (const auto& [cause, count] : other.dropped)
    count_cause(dropped, cause, count);
  for (const auto& [cause, count] : other.causal)
    count_cause(causal, cause, count);
  add_words(duties, other.duties);
  lost.insert(lost.end(), other.lost.begin(), other.lost.end());
  refused.insert(refused.end(), other.refused.begin(), other.refused.end());
  uprobes.insert(uprobes.end(), other.uprobes.begin(), other.uprobes.end());
  disarmed.insert(disarmed.end(), other.disarmed.begin(), other.disarmed.end());
  left_out.insert(left_out.end(), other.left_out.begin(), other.left_out.end());
  left_by_jump.insert(left_by_jump.end(), other.left_by_jump.begin(), other.left_by_jump.end());
  std::sort(left_by_jump.begin(), left_by_jump.end());
  left_by_jump.erase(std::unique(left_by_jump.begin(), left_by_jump.end()), left_by_jump.end());
  open.count += other.open.count;
  open.oldest_ns = std::max(open.oldest_ns, other.open.oldest_ns);
  sites += other.sites;
  attach_ms = std::max(attach_ms, other.attach_ms);
  stopped_ms = std::max(stopped_ms, other.stopped_ms);
  processes += other.processes;
  window_ms = std::max(window_ms, other.window_ms);
  cost.merge(other.cost);
}

void add_words(std::vector<uint64_t>& sums, const std::vector<uint64_t>& words) {
  sums.resize(std::max(sums.size(), words.size()));
  for (size_t i = 0; i < words.size(); ++i)
    sums[i] += words[i];
}

bool Losses::empty() const {
  return missed.empty() && dropped.empty() && lost.empty() && refused.empty() && disarmed.empty() &&
         left_out.empty();
}

std::string describe_uprobes(const std::vector<RefusedSite>& uprobes) {
  constexpr size_t kNamedMax = 3;
  std::vector<std::string_view> functions;  // Once each, though several processes have them.
  for (const RefusedSite& site : uprobes) {
    if (std::find(functions.begin(), functions.end(), site.function) == functions.end())
      functions.push_back(site.function);
  }
  const size_t named = std::min(functions.size(), kNamedMax);
  std::string names = fmt::format(
      "{}", fmt::join(functions.begin(), functions.begin() + static_cast<ptrdiff_t>(named), ", "));
  if (functions.size() > named) names += fmt::format(" and {} more", functions.size() - named);
  return fmt::format(
      "by uprobe: {} {} ({}); a hit costs a microsecond or more instead of nanoseconds",
      uprobes.size(), uprobes.size() == 1 ? "site" : "sites", names);
}

void subtract(Causes& causes, const Causes& earlier) {
  for (const auto& [cause, count] : earlier) {
    const auto found = causes.find(cause);
    if (found == causes.end()) continue;
    found->second -= std::min(found->second, count);
    if (found->second == 0) causes.erase(found);
  }
}

std::string describe(const DisarmedProbe& disarmed) {
  if (disarmed.bound > 0) {
    return fmt::format(
        "{} in process {}: its probes took {:.1f} % of the process's CPU time, where {:g} % is "
        "allowed in all, and were taken out after {:.1f} s: what it does from then on is not "
        "counted",
        disarmed.probe, disarmed.process, 100 * disarmed.share, 100 * disarmed.bound,
        disarmed.after_ms / 1000);
  }
  return fmt::format(
      "{} in process {} was out of fuel {} times and is disarmed; give it more with "
      "--fuel, or shorten its loop",
      disarmed.probe, disarmed.process, disarmed.exhausted);
}

void count_cause(Causes& causes, std::string_view cause, uint64_t count) {
  if (count == 0) return;
  const auto found = causes.find(cause);
  if (found == causes.end()) {
    causes.emplace(cause, count);
  } else {
    found->second += count;
  }
}

namespace {

struct Description {
  std::string_view cause;
  std::string_view one;
  std::string_view many;
};

constexpr std::array<Description, 45> kDescriptions = {{
    {kMissedReentry, "hit while a probe already ran on the thread",
     "hits while a probe already ran on the thread"},
    {kMissedAbandoned, "probe left by a longjmp out of a signal handler",
     "probes left by a longjmp out of a signal handler"},
    {kMissedRecords, "call not paired with its return: too many calls were open",
     "calls not paired with their return: too many calls were open"},
    {kMissedUnpaired,
     "return whose call is not known: it began before the session, or was not recorded",
     "returns whose calls are not known: they began before the session, or were not recorded"},
    {kMissedFuel, "hit out of fuel (a loop in an extension)",
     "hits out of fuel (a loop in an extension)"},
    {kMissedLeftAlone, "hit not looked at: its probe had been out of fuel 8 times",
     "hits not looked at: their probe had been out of fuel 8 times"},
    {kMissedUnreadable, "hit left out: memory that the query needs could not be read",
     "hits left out: memory that the query needs could not be read"},
    {kMissedTailCall, "return without a value: the function left by a jump to another",
     "returns without a value: the function left by a jump to another"},
    {kMissedNoSlot, "hit in a thread without a slot: too many threads",
     "hits in threads without a slot: too many threads"},
    {kMissedForks, "forked child process not traced (use --follow)",
     "forked child processes not traced (use --follow)"},
    {kMissedFollowed,
     "forked child process not followed: there were too many, or it filters its system calls",
     "forked child processes not followed: there were too many, or they filter their system calls"},
    {kMissedUprobes, "forked child process not followed by uprobes: only its jumps count, if any",
     "forked child processes not followed by uprobes: only their jumps count, if any"},
    {kMissedNoRequest, "hit in a thread that worked for no request that is known",
     "hits in threads that worked for no request that is known"},
    {kMissedNoContext, "context taken that nobody had handed over, as far as is known",
     "contexts taken that nobody had handed over, as far as is known"},
    {kMissedBadToken, "message with a token that is none", "messages with a token that is none"},
    {kMissedUnknownToken, "message with a token that nobody had sent, as far as is known",
     "messages with a token that nobody had sent, as far as is known"},
    {kMissedSentTwice, "message with a token that two requests have sent",
     "messages with a token that two requests have sent"},
    {kMissedWornToken, "message with a token that 1,000 had received before",
     "messages with a token that 1,000 had received before"},
    {kMissedContexts, "time all that was known of requests was forgotten, as a probe was missed",
     "times all that was known of requests was forgotten, as a probe was missed"},
    {kMissedWeak, "cause not believed: it is known less well than the query asks for",
     "causes not believed: they are known less well than the query asks for"},
    {kMissedOtherRequest, "join of two requests, which stay two",
     "joins of two requests, which stay two"},
    {kMissedOverlap,
     "join of two parts of a request that both have counted what may be the same: unknown in "
     "place, --plan emit answers it",
     "joins of two parts of a request that both have counted what may be the same: unknown in "
     "place, --plan emit answers them"},
    {kMissedAmbiguous, "message that could be of several requests, and is of none",
     "messages that could be of several requests, and are of none"},
    {kMissedUnplaced,
     "message on a UNIX connection or pipe that is older than the session, until a read there says "
     "what is "
     "left to be read",
     "messages on UNIX connections and pipes that are older than the session, until a read there "
     "says what "
     "is left to be read"},
    {kMissedNoProgram,
     "message read by a program of which no vocabulary says what it does with it ([[program]]), or "
     "by a guess that is not believed",
     "messages read by programs of which no vocabulary says what they do with them ([[program]]), "
     "or by guesses that are not believed"},
    {kMissedBesideLoss,
     "event joined with nothing, as others were lost beside it: conditions make fewer, "
     "--plan in-place needs none",
     "events joined with nothing, as others were lost beside them: conditions make fewer, "
     "--plan in-place needs none"},
    {kDroppedRequests, "request forgotten: too much was kept for joins",
     "requests forgotten: too much was kept for joins"},
    {kDroppedJoinRows, "event joined with a part of what happened before: there was too much",
     "events joined with a part of what happened before: there was too much"},
    {kDroppedLate, "count of a window not taken: it came later than the window is open ('late')",
     "counts of windows not taken: they came later than the windows are open ('late')"},
    {kDroppedWindowRows, "count of a window not kept: there are too many keys and panes",
     "counts of windows not kept: there are too many keys and panes"},
    {kDroppedVectors, "amount not clustered: there are too many vectors",
     "amounts not clustered: there are too many vectors"},
    {kDroppedTerms, "amount not clustered: there are too many terms",
     "amounts not clustered: there are too many terms"},
    {kDroppedAmounts, "amount not clustered: it is negative, no number, or all that there is and 0",
     "amounts not clustered: they are negative, no numbers, or all that there is and 0"},
    {kDroppedHeld, "event or row forgotten before its time: too much was held for joins",
     "events and rows forgotten before their time: too much was held for joins"},
    {kDroppedPartners, "event joined with a part of its partners: there were too many",
     "events joined with a part of their partners: there were too many"},
    {kMissedTooLate, "event so late that some of its partners may have been forgotten",
     "events so late that some of their partners may have been forgotten"},
    {kMissedEndedUnseen, "end of what had not been seen to begin: it is older than the session",
     "ends of what had not been seen to begin: it is older than the session"},
    {kMissedBegunAgain, "begin of what had not been seen to end: the one before it counts as ended",
     "begins of what had not been seen to end: those before them count as ended"},
    {kDroppedOutstanding, "begin not kept: too much was outstanding",
     "begins not kept: too much was outstanding"},
    {kDroppedPane, "event not sent by its node: an interval had no room for it",
     "events not sent by their nodes: an interval had no room for them"},
    {kDroppedNoRoom, "event not kept in the file: the disk had no room",
     "events not kept in the file: the disk had no room"},
    {kDroppedRing, "event not stored: a ring was full", "events not stored: a ring was full"},
    {kDroppedTable, "update not stored: a table was full", "updates not stored: a table was full"},
    {kDroppedDamaged, "byte of events not readable: the traced program wrote over it",
     "bytes of events not readable: the traced program wrote over them"},
    {kDroppedFrames, "frame of the file is damaged, of many events",
     "frames of the file are damaged, each of many events"},
}};

}  // namespace

std::string_view describe_cause(std::string_view cause, uint64_t count) {
  for (const Description& description : kDescriptions) {
    if (description.cause == cause) return count == 1 ? description.one : description.many;
  }
  return cause;
}

}  // namespace clew::collect
