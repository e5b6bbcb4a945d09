// SPDX-License-Identifier: Apache-2.0
// What a root asks of those who ask it, and what it tells of those who do what is not theirs.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cluster/root.h"
#include "cluster/shown_query.h"

namespace clew::cluster {

// Whether who says so may; of a query that is known only who asked first, and nothing old.
Expected<void> Root::check_who(const Ask& said) {
  if (options_.roles == nullptr) return {};
  CLEW_TRY(check_signature(said, options_.tenant, clock_.realtime_ns()));
  const Role* const role = CLEW_TRY(options_.roles->role_of(said.signature.key));
  const auto known = asked_.find(said.query);
  if (known == asked_.end()) {
    if (ended_.has(said.query, said.signature))
      return fail(ErrorCode::Refused, "the query has ended: its signature is not for another time");
    CLEW_TRY(check_text(*role, {.name = "query", .text = said.text}, said.name_patterns));
    const auto running = std::count_if(asked_.begin(), asked_.end(), [&](const auto& each) {
      const Asked& one = each.second;
      return one.want.is_wanted && one.ended_ns == 0 &&
             one.want.signature.key == said.signature.key;
    });
    return check_limits(*role, static_cast<size_t>(running), said.width_ns);
  }
  const Asked& asked = known->second;
  // To end it, the text is not needed.
  const bool is_its = asked.want.signature.key == said.signature.key &&
                      (!said.is_wanted || asked.want.text == said.text) &&
                      asked.said_ns < said.signature.issued_ns;
  return is_its ? Expected<void>() : fail(ErrorCode::Refused, "");
}

// Nodes get a newer signature long before the one that they have ends.
void Root::renew(Asked& asked, const Ask& said) {
  if (!is_signed(said.signature)) return;
  asked.said_ns = said.signature.issued_ns;
  const bool is_wanted = said.is_wanted && asked.want.is_wanted;
  const int64_t age = said.signature.issued_ns - asked.want.signature.issued_ns;
  if (!is_wanted || asked.ended_ns != 0 || age < kRenewedNs) return;
  asked.want.signature = said.signature;
  asked.is_announced = false;
}

// As a log of who asks what has it.
std::string Root::shown_asker(const Ask& said) const {
  if (!is_signed(said.signature)) return "";
  return options_.roles != nullptr ? " by " + options_.roles->shown(said.signature.key)
                                   : fmt::format(" with the key {}", text_of(said.signature.key));
}

void Root::refuse(const Ask& said, const std::string& reason) {
  const std::string note =
      fmt::format("query {}{} is refused: {}", said.query, shown_asker(said), shown_query(reason));
  // Who is refused asks again and again.
  if (std::exchange(refused_, note) != note) notes_.push_back(note);
  (void)bus_.publish(
      subjects_.status(said.query),
      to_bytes(Status{
          .query = said.query, .phase = Phase::Failed, .reason = reason, .root = options_.name}));
}

// By the subject it is known who spoke: a server permits nobody another one's.
void Root::tell_forger(const std::string& subject, const std::string& node) {
  const std::string who(Subjects::node_of(subject));
  const std::string why = fmt::format("it speaks in the name of node {}, and is not heard", node);
  for (auto& [query, asked] : asked_) {
    if (std::exchange(asked.strangers[who], why) != why) asked.has_news = true;
  }
  const std::string note = fmt::format("node {}: {}", who, why);
  if (std::exchange(forger_, note) != note) notes_.push_back(note);
}

// What fails is tried again, in case that changes, and told once.
void Root::tell_problem(const Error& error) {
  // That another root was faster is a refusal, too, and is as it should be.
  const bool was_late =
      error.code == ErrorCode::Refused && error.message.find("may not") == std::string::npos;
  if (was_late || std::exchange(problem_, error.message) == error.message) return;
  notes_.push_back("this root cannot do its work at present: " + error.message);
}

// Another one leads: one of another version of clew has a name that is not read.
void Root::stand_by(const Expected<Leader>& leader) {
  std::string by = leader ? leader->root : "of another version of clew";
  if (!leader) problem_ = leader.error().message + "; all roots need the same version of clew";
  if (std::exchange(stands_by_, by) == by) return;
  notes_.push_back(leader ? fmt::format("root {} leads, and this one stands by", by)
                          : fmt::format("a root {} leads, and this one stands by: {}", by,
                                        leader.error().message));
}

}  // namespace clew::cluster
