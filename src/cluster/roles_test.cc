// SPDX-License-Identifier: Apache-2.0
#include "cluster/roles.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cluster/pattern_within.h"
#include "cluster/session_frame.h"
#include "query/fake_types.h"
#include "query/parse.h"
#include "target/pattern.h"

namespace clew::cluster {
namespace {

using testing::HasSubstr;

const Role kWeb = {.name = "web",
                   .sources = {"shopd!charge_*", "lib*!close_card", "syscall:read", "usdt:shop:*"},
                   .processes = {"shopd"}};

// What a role may not of a query, or nothing.
std::string refusal(const Role& role, const std::string& text,
                    const std::vector<std::string>& names = {}) {
  query::FakeTypes types;
  const query::Text whole{.name = "query", .text = text};
  const auto query = query::parse_any(whole, {.types = &types});
  if (!query) return "it cannot be understood: " + query.error().message;
  const auto checked = check_query(role, *query, whole, names);
  if (checked) return "";
  EXPECT_EQ(checked.error().code, ErrorCode::Refused);
  return checked.error().message;
}

TEST(Roles, AllowWhatTheyName) {
  EXPECT_EQ(refusal(kWeb, "from e in cluster.Function(\"shopd!charge_card\") select count()"), "");
  EXPECT_EQ(refusal(kWeb, "from e in cluster.Function(\"shopd!charge_*\") select count()"), "");
  EXPECT_EQ(refusal(kWeb, "from e in cluster.Return(\"libshop.so!close_card\") select count()"),
            "");
  EXPECT_EQ(refusal(kWeb, "from e in usdt(\"shop:buy\") select count()", {"shopd"}), "");
  EXPECT_EQ(refusal(kWeb, "from e in tick(1s) select count()"), "");
}

// The place is that of the source.
TEST(Roles, RefuseWhatTheyDoNotName) {
  EXPECT_THAT(refusal(kWeb, "from e in cluster.Function(\"shopd!*\") select count()"),
              HasSubstr("query:1:11: error: role 'web' may not trace 'shopd!*'"));
  EXPECT_THAT(refusal(kWeb,
                      "from e in cluster.Function(\"shopd!charge_card\"), "
                      "cluster.Return(\"sshd!*\") select count()"),
              HasSubstr("may not trace 'sshd!*'"));
  EXPECT_THAT(refusal(kWeb, "from e in entry(\"charge_card\") select count()", {"shopd"}),
              HasSubstr("may not trace '*!charge_card'"));
  // No '*' of a module reaches into a function.
  EXPECT_NE(refusal(kWeb, "from e in cluster.Function(\"libx!y!close_card\") select count()"), "");
  EXPECT_THAT(refusal(kWeb, "from e in cluster.Line(\"shopd!a.c:3\") select count()"),
              HasSubstr("may not"));
  EXPECT_NE(refusal(kWeb, "from e in usdt(\"sshd:login\") select count()", {"shopd"}), "");
  EXPECT_NE(refusal(kWeb, "from e in cluster.Function(\"usdt:shop:x!f\") select count()"), "");
  Role all = kWeb;
  all.sources = {"sh*"};
  EXPECT_NE(refusal(all, "from e in cluster.Function(\"shopd!charge_card\") select count()"), "");
  all.sources = {"*"};
  EXPECT_EQ(refusal(all, "from e in cluster.Function(\"shopd!charge_card\") select count()"), "");
}

TEST(Roles, SayWhichProcesses) {
  const std::string text = "from e in cluster.Function(\"shopd!charge_card\") select count()";
  EXPECT_EQ(refusal(kWeb, text, {"shopd"}), "");
  EXPECT_THAT(refusal(kWeb, text, {"shop*"}), HasSubstr("may not trace processes called 'shop*'"));
  EXPECT_THAT(refusal(kWeb, text, {"shopd", "sshd"}), HasSubstr("called 'sshd'"));
  EXPECT_THAT(refusal(kWeb, text, {"[s"}), HasSubstr("called '[s'"));
}

TEST(Roles, SayWhetherMemoryIsRead) {
  Role role = kWeb;
  const std::vector<std::string> texts = {
      "from c in cluster.Function(\"shopd!charge_card\") groupby c.card->number select count()",
      "from c in cluster.Function(\"shopd!charge_card\") where str(c.card->owner->name) == \"x\" "
      "select count()",
      "from c in cluster.Function(\"shopd!charge_card\") let n = c.card->owner->age select sum(n)",
      "from c in cluster.Function(\"shopd!charge_card\") select max(c.card->number)"};
  for (const std::string& text : texts) {
    EXPECT_THAT(refusal(role, text), HasSubstr("may not read memory of processes")) << text;
  }
  role.memory = true;
  for (const std::string& text : texts)
    EXPECT_EQ(refusal(role, text), "") << text;
}

TEST(Roles, SayWhetherTheKernelIsAsked) {
  Role role = kWeb;
  const std::string text = "from e in syscall(\"read\") select count()";
  EXPECT_THAT(refusal(role, text, {"shopd"}), HasSubstr("may not ask the kernel"));
  role.kernel = true;
  EXPECT_EQ(refusal(role, text, {"shopd"}), "");
  EXPECT_THAT(refusal(role, text), HasSubstr("may not ask the kernel about all processes"));
  role.processes = {"*"};
  EXPECT_EQ(refusal(role, text), "");
  EXPECT_THAT(refusal(role, "from e in syscall(\"write\") select count()"),
              HasSubstr("may not trace 'syscall:write'"));
  EXPECT_THAT(refusal(role, "from e in profile(10ms) select count()"),
              HasSubstr("may not trace 'profile'"));
}

TEST(Roles, SayWhetherEventsAreJoinedByCause) {
  Role role = kWeb;
  const std::string text =
      "from a in entry(\"shopd!charge_card\") join b in entry(\"shopd!charge_two\") on b -> a "
      "select count()";
  EXPECT_THAT(refusal(role, text, {"shopd"}), HasSubstr("may not join by cause"));
  role.cause = true;
  EXPECT_EQ(refusal(role, text, {"shopd"}), "");
  const std::string other =
      "from a in entry(\"shopd!charge_card\") join b in entry(\"sshd!login\") on b -> a "
      "select count()";
  EXPECT_THAT(refusal(role, other, {"shopd"}), HasSubstr("may not trace 'sshd!login'"));
}

// Whatever it says, a name that one pattern matches is matched by the other: tried with all short
// names.
TEST(PatternWithin, SaysYesWhereEachNameIsTheOthers) {
  const std::vector<std::string> patterns = {
      "",     "a",     "ab",   "*",   "?",     "a*",   "*a",    "?*",   "*?",   "a*b", "a?b",
      "[ab]", "[a-c]", "[!a]", "a**", "[ab]*", "*a*b", "*[!b]", "[]a]", "a*b*", "**b"};
  std::vector<std::string> names = {""};
  for (size_t from = 0, length = 0; length < 4; ++length) {
    const size_t end = names.size();
    for (; from < end; ++from) {
      for (const char* next : {"a", "b", "c", "]"})
        names.push_back(names[from] + next);
    }
  }
  size_t yes = 0;
  for (const std::string& wanted : patterns) {
    const auto matches = target::Pattern::compile(wanted).value();
    for (const std::string& allowed : patterns) {
      if (!is_within(wanted, allowed)) continue;
      ++yes;
      const auto others = target::Pattern::compile(allowed).value();
      for (const std::string& name : names)
        EXPECT_TRUE(!matches.matches(name) || others.matches(name)) << wanted << " " << allowed;
    }
    EXPECT_TRUE(is_within(wanted, wanted)) << wanted;
    EXPECT_TRUE(is_within(wanted, "*"));
  }
  EXPECT_GT(yes, 80U);
  EXPECT_TRUE(is_within("nginx_*", "nginx*"));
  EXPECT_FALSE(is_within("nginx*", "nginx_*"));
  EXPECT_FALSE(is_within("[a", "*"));
}

// What a root can know, which has no programs.
TEST(Roles, AreCheckedOnTheTextAlone) {
  const auto check = [](const std::string& text, const std::vector<std::string>& names = {}) {
    return check_text(kWeb, {.name = "query", .text = text}, names).has_value();
  };
  EXPECT_TRUE(check("from e in cluster.Function(\"shopd!charge_card\") select count()"));
  EXPECT_FALSE(check("from e in cluster.Function(\"sshd!*\") select count()"));
  EXPECT_FALSE(check("from e in cluster.Function(\"shopd!charge_card\") select count()", {"sshd"}));
  EXPECT_TRUE(check("from e in cluster.Function(\"shopd!charge_card\") select max(e.card->number)"))
      << "what 'card' is, nodes know";
  EXPECT_FALSE(check("from e in kernel(\"vfs_read\") select max(e.no_such->number)"));
  EXPECT_FALSE(check("no query"));
}

constexpr const char* kKey = "PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=";

std::string file_with(const std::string& more) {
  return std::string("[keys.alice]\nkey = \"") + kKey + "\"\nrole = \"web\"\n" + more;
}

TEST(RolesFiles, SayWhoMayWhat) {
  const auto roles = Roles::parse(
      file_with("[roles.web]\nsources = [\"a!*\"]\nprocesses = [\"a\"]\nmemory = true\n"),
      "r.toml");
  ASSERT_TRUE(roles) << roles.error().message;
  EXPECT_EQ(roles->keys(), 1U);
  const Role expected{.name = "web", .sources = {"a!*"}, .processes = {"a"}, .memory = true};
  EXPECT_EQ(**roles->role_of(public_key_of(kKey).value()), expected);
  EXPECT_THAT(roles->role_of(SigningKey::make()->public_key()).error().message,
              HasSubstr("has no role here"));
}

TEST(RolesFiles, ThatComeWithClewAreRight) {
  const auto roles = Roles::read(CLEW_SOURCE_DIR "/examples/cluster/roles.toml");
  ASSERT_TRUE(roles) << roles.error().message;
  EXPECT_EQ((*roles->role_of(public_key_of(kKey).value()))->name, "web");
}

TEST(RolesFiles, AreReadStrictly) {
  const auto error_of = [](const std::string& text) {
    const auto roles = Roles::parse(text, "r.toml");
    return roles ? "" : roles.error().message;
  };
  EXPECT_THAT(error_of(file_with("")), HasSubstr("r.toml:3:8: error: there is no [roles.web]"));
  EXPECT_THAT(error_of(file_with("[roles.web]\nsource = []\n")),
              HasSubstr("r.toml:5:1: error: unknown key 'source'; did you mean 'sources'?"));
  EXPECT_THAT(error_of(file_with("[roles.web]\nsources = [\"[a\"]\n")), HasSubstr("has no ']'"));
  EXPECT_THAT(error_of(file_with("[roles.web]\nsources = \"a\"\n")), HasSubstr("is a list"));
  EXPECT_THAT(error_of(file_with("[roles.web]\nkernel = 1\n")), HasSubstr("is true or false"));
  EXPECT_THAT(
      error_of(file_with("[roles.web]\n[keys.bob]\nkey = \"") + kKey + "\"\nrole = \"web\"\n"),
      HasSubstr("this key is here twice"));
  EXPECT_THAT(error_of("[keys.a]\nrole = \"x\"\n"), HasSubstr("'key' is missing"));
  EXPECT_THAT(error_of("[keys.a]\nkey = \"AAAA\"\nrole = \"x\"\n"), HasSubstr("no public key"));
  EXPECT_THAT(error_of("keys = 3"), HasSubstr("expected [keys.NAME]"));
  EXPECT_NE(error_of("[("), "");
}

TEST(RolesFiles, SayHowMuch) {
  const auto parsed = [](const std::string& lines) {
    return Roles::parse("[roles.web]\n" + lines, "roles.toml");
  };
  for (const char* wrong : {"queries = 0", "queries = -1", "queries = 1001", "queries = \"2\"",
                            "interval_ms = 0", "interval_ms = 1.5"})
    EXPECT_THAT(parsed(wrong).error().message, HasSubstr("is a whole number from 1 to ")) << wrong;
  EXPECT_TRUE(parsed("queries = 1000\ninterval_ms = 1\n"));
  EXPECT_TRUE(check_limits(kWeb, 1000, 1)) << "no limit";
  const Role limited = {.name = "web", .queries = 2, .interval_ns = 1'000'000};
  EXPECT_TRUE(check_limits(limited, 1, 1'000'000));
  EXPECT_EQ(check_limits(limited, 2, 1'000'000).error().message,
            "role 'web' may ask 2 queries at once, and 2 of this key run");
  EXPECT_EQ(check_limits(limited, 0, 500'000).error().message,
            "role 'web' may ask for intervals of 1 ms and longer, and not of 0.5 ms");
}

TEST(RolesFiles, ThatOthersMayWriteAreRefused) {
  std::string name = (std::filesystem::temp_directory_path() / "clew-roles-XXXXXX").string();
  (void)close(mkstemp(name.data()));
  std::ofstream(name) << "[roles.web]\n";
  EXPECT_TRUE(Roles::read(name));
  std::filesystem::permissions(name, std::filesystem::perms(0666));
  EXPECT_EQ(Roles::read(name).error().code, ErrorCode::Refused);
  std::filesystem::permissions(name, std::filesystem::perms(0600));
  std::ofstream(name) << std::string(300'000, '#');
  EXPECT_EQ(Roles::read(name).error().code, ErrorCode::Limit);
  std::filesystem::remove(name);
  EXPECT_FALSE(Roles::read(name));
  EXPECT_FALSE(Roles::read("/"));
}

TEST(RolesFiles, AreReadAgainWhenTheyChange) {
  std::string name = (std::filesystem::temp_directory_path() / "clew-roles-XXXXXX").string();
  (void)close(mkstemp(name.data()));
  std::ofstream(name) << file_with("[roles.web]\n");
  auto file = RolesFile::open(name);
  ASSERT_TRUE(file) << file.error().message;
  const PublicKey key = public_key_of(kKey).value();
  const Roles& roles = file->roles();
  EXPECT_TRUE(roles.role_of(key));
  EXPECT_EQ(file->refresh(), std::nullopt);
  std::ofstream(name) << "no TOML";
  EXPECT_THAT(file->refresh().value_or(""), HasSubstr("roles stay as they were: "));
  EXPECT_EQ(file->refresh(), std::nullopt) << "told once";
  EXPECT_TRUE(roles.role_of(key));
  std::filesystem::remove(name);
  EXPECT_THAT(file->refresh().value_or(""), HasSubstr("roles stay as they were: "));
  std::ofstream(name) << "[roles.web]\n";
  EXPECT_THAT(file->refresh().value_or(""), HasSubstr("has changed: 0 may ask"));
  EXPECT_FALSE(roles.role_of(key));
  std::filesystem::remove(name);
}

TEST(RolesFiles, GoToTheSessionAsTheyAre) {
  const SessionWant want{.text = "q", .name_patterns = {"a"}, .width_ns = 1, .role = kWeb};
  const auto read = want_of(frame_of(want));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->role, kWeb);
  Frame cut = frame_of(want);
  const size_t size = cut.bytes.size();
  for (size_t less = 1; less < size; ++less) {
    cut.bytes.pop_back();
    EXPECT_FALSE(want_of(cut)) << less;
  }
}

}  // namespace
}  // namespace clew::cluster
