// SPDX-License-Identifier: Apache-2.0
#include "doctor/cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clew::doctor {
namespace {

using testing::HasSubstr;

CauseView server_view() {
  return {
      .pid = 12,
      .is_root = true,
      .known = {.program = "shopd",
                .says = "writes onward for the message read last (recipe)",
                .has_table = true,
                .file = "/etc/clew/shopd.toml",
                .is_believed = true,
                .hand_overs = {{.tracepoint = "shop.submit",
                                .cause = "put job",
                                .how = "recipe",
                                .places = {{.text = "entry(\"shopd!submit\")", .functions = 1}}}}},
      .open = {.tcp = 3}};
}

Finding cause_finding(const Findings& findings, std::string_view check) {
  const Finding* const finding = findings.find(check);
  EXPECT_NE(finding, nullptr) << check;
  return finding == nullptr ? Finding{} : *finding;
}

TEST(DoctorOfCauses, SaysOfAKnownServerThatAllIsWell) {
  const Findings findings = judge(server_view());
  for (const Finding& finding : findings.all())
    EXPECT_EQ(finding.verdict, Verdict::Ok) << finding.check << ": " << finding.detail;
  EXPECT_EQ(cause_finding(findings, "program").detail,
            "shopd: writes onward for the message read last (recipe) (shopd.toml)");
  EXPECT_EQ(cause_finding(findings, "hand-over").detail,
            "shop.submit (put job, recipe) at entry(\"shopd!submit\")");
}

TEST(DoctorOfCauses, SaysWhatAProgramWithoutATableLacks) {
  CauseView view = server_view();
  view.known.has_table = false;
  view.known.is_believed = false;
  const Finding program = cause_finding(judge(view), "program");
  EXPECT_EQ(program.verdict, Verdict::Note);
  EXPECT_THAT(program.remedy, HasSubstr("--vocabulary"));
}

TEST(DoctorOfCauses, SaysThatAHeuristicIsNotBelieved) {
  CauseView view = server_view();
  view.known.is_believed = false;
  EXPECT_THAT(cause_finding(judge(view), "program").remedy, HasSubstr("with cause >= heuristic"));
}

TEST(DoctorOfCauses, NamesFunctionsThatThisBuildLacks) {
  CauseView view = server_view();
  view.known.hand_overs[0].places.push_back(
      {.text = "entry(\"shopd!submit_all\")", .problem = "no function 'submit_all' in shopd"});
  const Finding place = cause_finding(judge(view), "hand-over");
  EXPECT_EQ(place.verdict, Verdict::Problem);
  EXPECT_THAT(place.detail, HasSubstr("no function 'submit_all' in shopd"));
  EXPECT_THAT(place.remedy, HasSubstr("--allow-missing"));
}

TEST(DoctorOfCauses, KnowsWhoMaySeeMessages) {
  CauseView view = server_view();
  view.known.message_problem = "no event matches 'sock:sock_send_length'";
  EXPECT_THAT(cause_finding(judge(view), "messages").refused, HasSubstr("6.3"));
  view.is_root = false;
  EXPECT_EQ(cause_finding(judge(view), "messages").remedy, "run as root");
}

TEST(DoctorOfCauses, CountsWhatIsUnseen) {
  CauseView view = server_view();
  view.open = {.tcp = 3, .unix_datagrams = 2, .pipes = 4};
  EXPECT_EQ(cause_finding(judge(view), "unseen").detail,
            "2 UNIX sockets of datagrams, 4 ends of pipes are open, too");
  view.known.follows_pipes = true;
  EXPECT_EQ(cause_finding(judge(view), "unseen").detail,
            "2 UNIX sockets of datagrams are open, too");
  EXPECT_EQ(cause_finding(judge(view), "pipes").detail,
            "4 ends are open, what is read there is followed");
  EXPECT_EQ(judge(view).problems(), 0U);
}

}  // namespace
}  // namespace clew::doctor
