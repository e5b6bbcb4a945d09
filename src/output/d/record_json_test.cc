// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "output/d/record_testing.h"

namespace clew::output::d {
namespace {

using query::d::Action;
using query::d::FieldKind;

class RecordAsJson : public RecordTest {
 protected:
  void SetUp() override {
    RecordTest::SetUp();
    options_.format = Format::Json;
    options_.is_quiet = true;
  }
};

TEST_F(RecordAsJson, HaveTheirValuesAndTheirText) {
  const uint32_t format = add_format("%s has %d\n");
  fire(Builder()
           .action(Action::Printf)
           .format(format)
           .string("a \"b\"")
           .integer(-3, 4)
           .action(Action::Trace)
           .integer(255, 1, false)
           .action(Action::Trace, false)
           .integer(9),
       {4096, "syscall", "vmlinux", "read", "entry"}, Firing{12});
  EXPECT_EQ(written(),
            R"({"probe":{"id":4096,"provider":"syscall","module":"vmlinux","function":"read",)"
            R"("name":"entry"},"cpu":12,"time":0,"values":["a \"b\"",-3,255],)"
            R"("text":"a \"b\" has -3\n255"})"
            "\n");
}

TEST_F(RecordAsJson, TextsThatAreNoUtf8StayApart) {
  fire(Builder().action(Action::Trace).string("a\xff"));
  const auto line = nlohmann::json::parse(written());
  EXPECT_EQ(line.at("values").at(0), nlohmann::json({{"hex", "61ff"}}));
}

TEST_F(RecordAsJson, StacksAreLists) {
  fire(Builder().action(Action::Ustack).words(FieldKind::UserStack, {7, 0x1000, 0x1104, 0}));
  const auto line = nlohmann::json::parse(written());
  const nlohmann::json& stack = line.at("values").at(0);
  ASSERT_EQ(stack.size(), 2U);
  EXPECT_EQ(stack[0].at("symbol"), "read");
  EXPECT_EQ(stack[1].at("symbol"), "write");
  EXPECT_EQ(stack[1].at("offset"), 4);
  EXPECT_EQ(stack[1].at("module"), "libc.so.6");
}

TEST_F(RecordAsJson, WhatTheHostDoesComesBehindWhatWasShownBefore) {
  fire(Builder()
           .action(Action::Trace)
           .integer(1)
           .action(Action::System)
           .format(add_format("date"))
           .action(Action::Trace)
           .integer(2));
  const std::string text = written();
  const size_t run = text.find("<run date>");
  ASSERT_NE(run, std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(text.substr(0, run)).at("values").dump(), "[1]");
  EXPECT_EQ(nlohmann::json::parse(text.substr(run + 10)).at("values").dump(), "[2]");
}

TEST_F(RecordAsJson, AnEmptyClauseIsALineAndChangesOfAggregationsAreNone) {
  fire({});
  EXPECT_EQ(nlohmann::json::parse(written()).at("probe").at("name"), "BEGIN");
  fire(Builder().action(Action::Clear).of({0}));
  EXPECT_EQ(written(), "");
}

}  // namespace
}  // namespace clew::output::d
