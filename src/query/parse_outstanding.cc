// SPDX-License-Identifier: Apache-2.0
// What was begun and has not ended: a source that is made from two unions.
//
//     outstanding := "outstanding" "(" sources "until" sources "on" key { "," key }
//                    [ "across" "processes" ] ")"
//     key         := expression [ "equals" expression ]
#include <fmt/format.h>

#include "query/parser.h"

namespace clew::query {
namespace {

constexpr std::string_view kOutstandingHow =
    "as in outstanding(return(\"libc.so.6!malloc\") until entry(\"libc.so.6!free\") on retval "
    "equals arg0)";

}  // namespace

bool Parser::at_outstanding() const {
  return at_word("outstanding") && at_symbol("(", 1);
}

Expected<SyntaxSource> Parser::outstanding() {
  const Nesting deeper(nesting_);
  CLEW_TRY(check_nesting());
  SyntaxSource result;
  result.name_span = peek().span;
  take();  // outstanding
  take();  // (
  SyntaxOutstanding made;
  made.opened = CLEW_TRY(sources());
  CLEW_TRY(expect_word("until", fmt::format("and what ends it, {}", kOutstandingHow)));
  made.closed = CLEW_TRY(sources());
  CLEW_TRY(expect_word("on", fmt::format("and the key that both have, {}", kOutstandingHow)));
  do {
    made.keys.push_back(CLEW_TRY(outstanding_key()));
  } while (take_symbol(","));
  if (take_word("across")) {
    CLEW_TRY(expect_word("processes", "after 'across': a key means the same in all of them"));
    made.is_across = true;
  }
  CLEW_TRY(expect_symbol(")", "at the end of outstanding(…)"));
  result.outstanding.push_back(std::move(made));
  return result;
}

// outstanding(…) one in 64
Expected<void> Parser::one_in(SyntaxSource& source) {
  take();  // one
  take();  // in
  source.one_in_span = peek().span;
  source.one_in = CLEW_TRY(positive_integer("after 'one in': of how many keys one is looked at"));
  if (source.one_in <= kOneInMax) return {};
  return report_.fail(source.one_in_span, fmt::format("at most one in {}", kOneInMax));
}

// One that is written once is written the same way over both events.
Expected<SyntaxEquals> Parser::outstanding_key() {
  SyntaxEquals key;
  key.left = CLEW_TRY(join_key());
  key.right = take_word("equals") ? CLEW_TRY(join_key()) : key.left;
  return key;
}

}  // namespace clew::query
