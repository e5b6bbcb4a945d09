// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/doctor.h"
#include "doctor/nats_rules.h"
#include "doctor/nats_settings.h"

namespace clew::doctor {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string shipped() {
  std::ifstream file(CLEW_SOURCE_DIR "/examples/cluster/nats-server.conf");
  return {std::istreambuf_iterator<char>(file), {}};
}

Findings findings_of(const std::string& text) {
  const auto settings = parse_nats_settings(text, "a.conf");
  EXPECT_TRUE(settings) << settings.error().message;
  Findings findings("server");
  if (settings) check_nats_settings(*settings, findings);
  return findings;
}

// What is wrong by this rule; empty: nothing.
std::string problem_of(std::string_view check, const std::string& text) {
  const Findings findings = findings_of(text);
  const Finding* const found = findings.find(check);
  EXPECT_NE(found, nullptr) << check;
  return found != nullptr && found->verdict == Verdict::Problem ? found->detail : "";
}

// An account with one user, whose settings these are.
std::string with_user(const std::string& settings) {
  return "listen: 127.0.0.1:4222\njetstream {}\naccounts { A { users: [ { user: joe, " + settings +
         " } ] } }\n";
}
std::string with_permissions(const std::string& permissions) {
  return with_user("permissions: { " + permissions + " }");
}
const std::string kSound = with_permissions("publish: [ a.b ], subscribe: [ a.c ]");

TEST(NatsRules, FindNothingInWhatComesWithClew) {
  const Findings findings = findings_of(shipped());
  for (const Finding& finding : findings.all())
    EXPECT_EQ(finding.verdict, Verdict::Ok) << finding.check << ": " << finding.detail;
  EXPECT_GE(findings.all().size(), 10U);
  EXPECT_EQ(findings_of(kSound).problems(), 0U);
}

TEST(NatsRules, FindNothingInThreeServersAsTheyCome) {
  const auto settings = read_nats_settings(CLEW_SOURCE_DIR "/examples/cluster/three-servers.conf");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->files.size(), 2U);
  Findings findings("server");
  check_nats_settings(*settings, findings);
  for (const Finding& finding : findings.all())
    EXPECT_EQ(finding.verdict, Verdict::Ok) << finding.check << ": " << finding.detail;
}

TEST(NatsRules, FindWhoIsLetInByMistake) {
  EXPECT_THAT(problem_of("accounts", kSound + "authorization { users: [] }\n"),
              HasSubstr("a.conf:4: 'authorization' stands beside 'accounts'"));
  EXPECT_THAT(problem_of("accounts", "Authorization { token: x }\nACCOUNTS { $SYS {} }\n"),
              HasSubstr("stands beside"));
  EXPECT_THAT(problem_of("accounts", "listen: 127.0.0.1:4222\n"), HasSubstr("everybody is let in"));
  EXPECT_EQ(problem_of("accounts", kSound), "");
  EXPECT_THAT(problem_of("no-auth-user", kSound + "no_auth_user: joe"),
              HasSubstr("a.conf:4: 'no_auth_user' is joe"));
  EXPECT_THAT(problem_of("no-auth-user", kSound + "websocket { no_auth_user = \"joe\" }"),
              HasSubstr("no_auth_user"));
}

TEST(NatsRules, FindGrantsOfTheApi) {
  for (const char* subject : {"$JS.>", "$JS.API.>", "$JS.API.STREAM.DELETE.*", "$JS.*.INFO", ">",
                              "*.API.>", "$JS.API.STREAM.MSG.GET.*"}) {
    EXPECT_THAT(problem_of("jetstream-api", with_permissions("subscribe: [ a ], publish: [ x, \"" +
                                                             std::string(subject) + "\" ]")),
                HasSubstr("user joe may publish on '" + std::string(subject) + "'"));
  }
  for (const char* subject : {"$JS.API.STREAM.MSG.GET.KV_clew_default", "clew.>", "$KV.x.*"}) {
    EXPECT_EQ(problem_of("jetstream-api", with_permissions("subscribe: [ a ], publish: \"" +
                                                           std::string(subject) + "\"")),
              "");
  }
  // In other words, and by a name.
  EXPECT_NE(problem_of("jetstream-api", with_permissions("pub { allow = \"$JS.>\" }, sub: a")), "");
  EXPECT_NE(problem_of("jetstream-api", "P: { publish: [\"$JS.>\"], subscribe: a }\n" +
                                            with_user("permissions: $P")),
            "");
  EXPECT_NE(problem_of("jetstream-api",
                       "listen: 127.0.0.1:4222\nauthorization { "
                       "default_permissions { publish: \"$JS.>\" } }"),
            "");
}

TEST(NatsRules, FindListsOfWhatIsDenied) {
  EXPECT_THAT(problem_of("deny-lists",
                         with_permissions("publish: a, subscribe: { allow: b, deny: [ c ] }")),
              HasSubstr("user joe has a list of what is denied"));
  EXPECT_EQ(problem_of("deny-lists", kSound), "");
}

TEST(NatsRules, FindWhoMayDoEverything) {
  EXPECT_THAT(problem_of("permissions", with_user("password: x")), HasSubstr("has no permissions"));
  EXPECT_THAT(problem_of("permissions", with_permissions("publish: a")),
              HasSubstr("may subscribe to everything: there is no list"));
  // As 2.9.10 was seen to do.
  EXPECT_THAT(problem_of("permissions", with_permissions("publish: { allow: [] }, subscribe: a")),
              HasSubstr("may publish everything: its list is empty"));
  EXPECT_THAT(problem_of("permissions", with_permissions("publish: \">\", subscribe: a")),
              HasSubstr("may publish everything"));
  EXPECT_EQ(problem_of("permissions", kSound), "");
}

TEST(NatsRules, FindWhoMaySpeakForOtherNodes) {
  const auto with_publish = [](const std::string& subjects) {
    return problem_of("nodes", with_permissions("subscribe: a, publish: [ " + subjects + " ]"));
  };
  EXPECT_THAT(with_publish("clew.t.beat.*"), HasSubstr("user joe may speak for any node"));
  EXPECT_THAT(with_publish("\"clew.t.part.>\""), HasSubstr("any node"));
  EXPECT_THAT(with_publish("clew.t.beat.n1, clew.t.part.*.*.n2"), HasSubstr("several nodes"));
  EXPECT_EQ(with_publish("clew.t.beat.n1, clew.t.part.*.*.n1"), "");
}

TEST(NatsRules, FindOtherListeners) {
  EXPECT_THAT(problem_of("other-listeners", kSound + "websocket { port: 8080 }"),
              HasSubstr("a listener for websocket"));
  EXPECT_THAT(problem_of("other-listeners", kSound + "MQTT: { port: 1883 }"),
              HasSubstr("a listener for mqtt"));
}

TEST(NatsRules, FindPlainTextBeyondTheMachine) {
  const std::string users =
      "jetstream {}\naccounts { A { users: [ { user: a, permissions: { "
      "publish: b, subscribe: c } } ] } }\n";
  EXPECT_THAT(problem_of("tls", users), HasSubstr("at all addresses without TLS"));
  EXPECT_THAT(problem_of("tls", users + "port: 4222"), HasSubstr("all addresses"));
  EXPECT_THAT(problem_of("tls", users + "host = 10.0.0.1"), HasSubstr("at 10.0.0.1 without TLS"));
  EXPECT_THAT(problem_of("tls", users + "listen: 127.example.org:4222"), HasSubstr("without TLS"));
  EXPECT_EQ(problem_of("tls", users + "listen: localhost:4222"), "");
  EXPECT_EQ(problem_of("tls", users + "host: \"::1\""), "");
  const std::string tls = "tls { cert_file: a, key_file: b, verify_and_map: true }\n";
  EXPECT_EQ(problem_of("tls", users + tls), "");
  EXPECT_THAT(problem_of("tls", users + tls + "cluster { listen: 0.0.0.0:6222 }"),
              HasSubstr("other servers are listened to at 0.0.0.0 without TLS"));
  EXPECT_THAT(problem_of("tls", users + tls + "leafnodes { port: 7422 }"), HasSubstr("leaf nodes"));
  EXPECT_THAT(problem_of("tls", users + tls + "allow_non_tls: true"), HasSubstr("allow_non_tls"));
  EXPECT_EQ(problem_of("tls", users + tls + "leafnodes { remotes: [] }"), "");
  const Finding* const note = findings_of(users + "tls { cert_file: a }").find("certificates");
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(note->verdict, Verdict::Note);
}

TEST(NatsRules, FindMonitoringThatAllReach) {
  EXPECT_THAT(problem_of("monitoring", kSound + "http: 0.0.0.0:8222"),
              HasSubstr("'http' is open to all"));
  const std::string open = "listen: 0.0.0.0:4222\n";
  EXPECT_THAT(problem_of("monitoring", open + "http_port: 8222"), HasSubstr("http_port"));
  EXPECT_EQ(problem_of("monitoring", kSound + "http: 127.0.0.1:8222"), "");
}

TEST(NatsSettings, AreReadAsTheServerReadsThem) {
  const auto settings = parse_nats_settings(
      "# a\n// b\nA: 1; b = 'two words', c three\n"
      "map { x: [1, \"a # b\", $NAME\n 4], NAME: n }\nblock: ( a\nb )\n\"q.r\": \"e\\\"f\"\n",
      "a.conf");
  ASSERT_TRUE(settings) << settings.error().message;
  const SettingValue& root = settings->root;
  EXPECT_EQ(root.last("a")->text, "1");
  EXPECT_EQ(root.last("b")->text, "two words");
  EXPECT_EQ(root.last("c")->text, "three");
  const auto& items = root.last("map")->last("x")->items;
  ASSERT_EQ(items.size(), 4U);
  EXPECT_EQ(items[1].text, "a # b");
  EXPECT_EQ(items[2].text, "n");
  EXPECT_EQ(root.last("block")->text, " a\nb ");
  EXPECT_EQ(root.last("q.r")->text, "e\"f");
  EXPECT_EQ(settings->place(*root.last("map")), "a.conf:4");
}

TEST(NatsSettings, ThatMakeNoSenseSayWhere) {
  const auto error_of = [](const std::string& text) {
    const auto settings = parse_nats_settings(text, "a.conf");
    return settings ? "" : settings.error().message;
  };
  EXPECT_EQ(error_of("a {\n b: 1"), "a.conf:2: error: a '{' has no '}'");
  EXPECT_EQ(error_of("a: ["), "a.conf:1: error: a '[' has no ']'");
  EXPECT_EQ(error_of("a: (b"), "a.conf:1: error: a '(' has no ')'");
  EXPECT_EQ(error_of("a: \"b\nc\""), "a.conf:1: error: a text has no end");
  EXPECT_EQ(error_of("\n}"), "a.conf:2: error: a setting begins with '}'");
  EXPECT_EQ(error_of("a:"), "a.conf:1: error: a value is missing");
  EXPECT_THAT(error_of("include b.conf"), HasSubstr("includes another file"));
  EXPECT_NE(error_of(std::string(100'000, '{')), "");
  std::string deep;
  for (int i = 0; i < 100'000; ++i)
    deep += "a{";
  EXPECT_THAT(error_of(deep), HasSubstr("maps within maps are too many"));
  EXPECT_THAT(error_of("a: " + std::string(100'000, '[')), HasSubstr("lists within lists"));
  std::string many = "a: [";
  for (int i = 0; i < 200'001; ++i)
    many += "1,";
  EXPECT_THAT(error_of(many + "]"), HasSubstr("too many values"));
}

// However they stand for one another.
TEST(NatsSettings, OfNamesWithoutAnEndEnd) {
  for (const char* text :
       {"a: $a", "a: $b\nb: $a", "a { b: $a }", "a { b: $a, c: $a, d: $a }", "a: [ $a, $a ]"})
    (void)parse_nats_settings(text, "a.conf");
  std::string doubling = "a0: [1, 1]\n";
  for (int i = 1; i < 60; ++i) {
    const std::string last = std::to_string(i - 1);
    doubling += "a" + std::to_string(i) + ": [ $a" + last + ", $a" + last + " ]\n";
  }
  EXPECT_FALSE(parse_nats_settings(doubling, "a.conf"));
  std::string deep = "a0: 1\n";
  for (int i = 1; i < 3000; ++i)
    deep += "a" + std::to_string(i) + ": [[[[[[[[ $a" + std::to_string(i - 1) + " ]]]]]]]]\n";
  EXPECT_FALSE(parse_nats_settings(deep, "a.conf"));
}

// Any byte of a real file changed, and the file cut anywhere, is read or refused.
TEST(NatsSettings, OfDamagedFilesAreReadOrRefused) {
  const std::string text = shipped();
  for (size_t at = 0; at < text.size(); at += 7) {
    (void)parse_nats_settings(text.substr(0, at), "a.conf");
    for (const char byte : {'\0', '{', '}', '"', '$', '[', '\\', '\xff'}) {
      std::string other = text;
      other[at] = byte;
      if (const auto settings = parse_nats_settings(other, "a.conf")) {
        Findings findings("server");
        check_nats_settings(*settings, findings);
      }
    }
  }
}

TEST(NatsSettings, IncludeOtherFiles) {
  std::string name = (fs::temp_directory_path() / "clew-nats-conf-XXXXXX").string();
  const fs::path folder = mkdtemp(name.data());
  const auto write = [&folder](const std::string& file, const std::string& text) {
    std::ofstream(folder / file) << text;
    return (folder / file).string();
  };
  write("more.conf", "\nno_auth_user: joe\n");
  const std::string path = write("a.conf", kSound + "include ./more.conf\n");
  const auto diagnosis = diagnose_cluster({.place = path});
  ASSERT_TRUE(diagnosis) << diagnosis.error().message;
  EXPECT_EQ(diagnosis->problems, 1U);
  EXPECT_THAT(diagnosis->text, HasSubstr("more.conf:2: 'no_auth_user' is joe"));
  EXPECT_FALSE(diagnose_cluster({.place = write("b.conf", "include b.conf\n")}));
  EXPECT_FALSE(diagnose_cluster({.place = (folder / "absent.conf").string()}));
  EXPECT_FALSE(diagnose_cluster({.place = folder.string()}));
  fs::remove_all(folder);
}

TEST(NatsServers, ThatAreNotThereSaySo) {
  const auto diagnosis = diagnose_cluster({.place = "nats://joe:secret@127.0.0.1:1"});
  ASSERT_FALSE(diagnosis);
  EXPECT_THAT(diagnosis.error().message, HasSubstr("127.0.0.1:1: "));
}

}  // namespace
}  // namespace clew::doctor
