// SPDX-License-Identifier: Apache-2.0
// The flame graph as its text has it, and as a parser of XML reads it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "output/sinks.h"

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::ColumnRole;
using aggregate::ColumnType;
using aggregate::Stack;
using aggregate::Value;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Drawn {
  std::string name;  // With what the tooltip says behind it.
  double x = 0;
  double y = 0;
  double width = 0;
  std::string color;
  std::string text;
};

class Svg : public testing::Test {
 protected:
  Svg() { sink_->begin(kColumns, RowMode::Table); }

  // "main;serve;read"
  void add(const std::string& outermost_first, uint64_t count) {
    Stack stack;
    for (size_t begin = 0; begin <= outermost_first.size();) {
      const size_t end = std::min(outermost_first.find(';', begin), outermost_first.size());
      stack.frames.insert(stack.frames.begin(),
                          {.symbol = outermost_first.substr(begin, end - begin)});
      begin = end + 1;
    }
    const std::vector<Value> row = {stack, count};
    sink_->row(row);
  }
  const std::string& finish(const collect::Losses& losses = {}) {
    sink_->finish(losses);
    return bytes_.text();
  }
  std::vector<Drawn> frames() {
    static const std::regex kFrame(
        "<g class=\"frame\"><title>([^<]*)</title><rect x=\"([^\"]*)\" y=\"([^\"]*)\" "
        "width=\"([^\"]*)\" height=\"16\" fill=\"(#[0-9a-f]{6})\"/><text[^>]*>([^<]*)");
    std::vector<Drawn> all;
    const std::string& text = bytes_.text();
    for (std::sregex_iterator at(text.begin(), text.end(), kFrame); at != std::sregex_iterator();
         ++at) {
      all.push_back({(*at)[1], std::stod((*at)[2]), std::stod((*at)[3]), std::stod((*at)[4]),
                     (*at)[5], (*at)[6]});
    }
    return all;
  }
  Drawn frame(const std::string& name) {
    for (const Drawn& one : frames()) {
      if (one.name.starts_with(name + "\n")) return one;
    }
    ADD_FAILURE() << "no frame " << name;
    return {};
  }

  StringSink notes_;

 private:
  const std::vector<Column> kColumns = {
      {.name = "stack", .type = ColumnType::Stack, .role = ColumnRole::Key},
      {.name = "calls", .type = ColumnType::Unsigned, .role = ColumnRole::Aggregate}};
  StringSink bytes_;
  std::unique_ptr<RowSink> sink_ =
      make_sink({.format = Format::Svg, .about = {.query = "from e in\n  entry(\"<f>\") & more"}},
                bytes_, notes_);
};

TEST_F(Svg, GivesEachFrameItsShareAboveItsCaller) {
  add("main;read", 25);
  add("main;serve;read", 50);
  add("idle", 25);
  (void)finish();
  EXPECT_EQ(frames().size(), 6U);
  EXPECT_EQ(frame("all").name, "all\n100 calls (100.00 %)");
  EXPECT_EQ(frame("all").width, 1200);
  EXPECT_EQ(frame("idle").x, 0);
  EXPECT_EQ(frame("idle").width, 300);
  EXPECT_EQ(frame("main").name, "main\n75 calls (75.00 %)");
  EXPECT_EQ(frame("main").x, 300);
  EXPECT_EQ(frame("main").width, 900);
  EXPECT_EQ(frame("serve").x, 600);
  EXPECT_EQ(frame("serve").width, 600);
  EXPECT_EQ(frame("main").y, frame("all").y - 17);
  EXPECT_EQ(frame("serve").y, frame("main").y - 17);
}

TEST_F(Svg, JoinsOnlyWhatStandsSideBySideUnderOneCaller) {
  add("a b;x", 1);  // Sorted as text this would stand between the two others.
  add("a;x", 1);
  add("a", 1);
  (void)finish();
  const std::vector<Drawn> all = frames();
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const Drawn& one) { return one.name.starts_with("a\n"); }),
            1);
  EXPECT_EQ(frame("a").width, 800);
}

TEST_F(Svg, HasOneColorForAName) {
  add("f;g", 1);
  add("h;g", 1);
  (void)finish();
  std::vector<std::string> colors;
  for (const Drawn& one : frames()) {
    if (one.name.starts_with("g\n")) colors.push_back(one.color);
  }
  ASSERT_EQ(colors.size(), 2U);
  EXPECT_EQ(colors[0], colors[1]);
  EXPECT_NE(frame("f").color, frame("h").color);
}

TEST_F(Svg, CutsNamesToTheirFrames) {
  add("a_function_with_a_long_name", 90);
  add("wide", 1000);
  add("no_room", 10);
  (void)finish();
  EXPECT_EQ(frame("wide").text, "wide");
  EXPECT_EQ(frame("a_function_with_a_long_name").text, "a_function..");
  EXPECT_EQ(frame("no_room").text, "");
}

TEST_F(Svg, CutsBetweenCharacters) {
  add("ééééééééééééééééééééé", 90);
  add("wide", 1000);
  (void)finish();
  EXPECT_EQ(frame("ééééééééééééééééééééé").text, "éééééééééé..");
}

TEST_F(Svg, LeavesOutAndCountsWhatIsTooNarrow) {
  add("wide", 1'000'000);
  add("narrow;narrower", 1);
  EXPECT_THAT(finish(), HasSubstr("1000001 calls; 2 frames are too narrow to be drawn</text>"));
  EXPECT_EQ(frames().size(), 2U);
}

TEST_F(Svg, LetsNoNameOutOfItsPlace) {
  add("</title><script>alert(1)</script>&\"", 1);
  add(std::string("nul\0\x1b[2J\xff\xef\xbf\xbf", 13), 1);
  const std::string& text = finish();
  EXPECT_THAT(text,
              AllOf(HasSubstr("&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;"),
                    HasSubstr("nul\\x00\\x1b[2J\\xff\xef\xbf\xbd"),
                    HasSubstr("entry(&quot;&lt;f&gt;&quot;) &amp; more</title>")));
  EXPECT_THAT(text, Not(HasSubstr("<script>alert")));
}

TEST_F(Svg, IsXmlWhateverNamesThereAre) {
  std::string all_bytes;
  for (int byte = 1; byte < 256; ++byte)
    all_bytes += static_cast<char>(byte);
  add(all_bytes, 1);
  add("]]></svg>;<!--;&amp;#0;\xef\xbf\xbe\xef\xbf\xbf", 1);
  FILE* const parser = popen(
      "python3 -c 'import sys, xml.dom.minidom as x; "
      "d = x.parse(sys.stdin.buffer); d.getElementsByTagName(\"g\")[1]'",
      "w");
  ASSERT_NE(parser, nullptr);
  const std::string& text = finish();
  EXPECT_EQ(fwrite(text.data(), 1, text.size(), parser), text.size());
  EXPECT_EQ(pclose(parser), 0);
}

TEST_F(Svg, SaysWhatTheAnswerLacks) {
  add("f", 1);
  collect::Losses losses;
  losses.dropped["ring_full"] = 12;
  EXPECT_THAT(finish(losses), HasSubstr("fill=\"#b00\">dropped: 12 "));
  EXPECT_THAT(notes_.text(), HasSubstr("dropped: 12"));
}

TEST_F(Svg, SaysOfManyLossesHowManyThereAre) {
  add("f", 1);
  collect::Losses losses;
  for (int i = 0; i < 20; ++i)
    losses.lost.push_back("process " + std::to_string(i));
  EXPECT_THAT(finish(losses), AllOf(HasSubstr("process 4<"), Not(HasSubstr("process 5<")),
                                    HasSubstr("and 15 more lines")));
}

TEST_F(Svg, OfNothingIsAPictureThatSaysSo) {
  EXPECT_THAT(finish(), AllOf(HasSubstr(">no stacks</text>"), HasSubstr("</svg>")));
  EXPECT_THAT(frames(), IsEmpty());
}

TEST_F(Svg, OfMoreThanANumberHoldsStillAddsUp) {
  add("f", UINT64_MAX);
  add("g", UINT64_MAX);
  (void)finish();
  EXPECT_EQ(frame("all").width, 1200);
  EXPECT_EQ(frame("f").width, 1200);
}

}  // namespace
}  // namespace clew::output
