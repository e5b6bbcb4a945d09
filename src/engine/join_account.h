// SPDX-License-Identifier: Apache-2.0
// What a joined query has carried while it ran, as `explain --run` shows it. Bytes are, from
// events, those of the values that the tracer keeps (answer/join_tally.h); in place, those that a
// context has room for, and that whoever takes it over copies.
#pragma once

#include <string>
#include <vector>

#include "answer/join_tally.h"
#include "collect/losses.h"
#include "plan/in_place.h"
#include "plan/joined.h"
#include "query/query.h"

namespace clew::engine {

struct AccountLine {
  std::string text;
  std::string json;  // An object.
};
using JoinAccount = std::vector<AccountLine>;

JoinAccount account_of(const plan::Joined& joined, const answer::JoinTally& tally);
// `losses`: of a session whose contexts were counted (plan::Contexts::are_counted).
JoinAccount account_in_place(const plan::Joined& joined, const plan::Contexts& contexts,
                             const collect::Losses& losses);

}  // namespace clew::engine
