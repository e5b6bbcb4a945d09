// SPDX-License-Identifier: Apache-2.0
#include "output/d/listing.h"

#include <csignal>

#include <gtest/gtest.h>

#include "output/d/options.h"

namespace clew::output::d {
namespace {

TEST(DListing, HasColumns) {
  EXPECT_EQ(listing_heading(),
            "   ID   PROVIDER            MODULE                          FUNCTION NAME\n");
  EXPECT_EQ(listing_row({1, "dtrace", "", "", "BEGIN"}),
            "    1     dtrace                                                     BEGIN\n");
  EXPECT_EQ(listing_row({123456, "syscall", "vmlinux", "read", "entry"}),
            "123456    syscall           vmlinux                              read entry\n");
}

TEST(DListing, DetailsHaveStabilitiesAndTypes) {
  const std::string types[] = {"struct task_struct *", "int"};
  EXPECT_EQ(listing_details(query::d::stability_of_provider("sched"), types),
            "\n\tProbe Description Attributes\n"
            "\t\tIdentifier Names: Private\n"
            "\t\tData Semantics:   Private\n"
            "\t\tDependency Class: Unknown\n"
            "\n\tArgument Attributes\n"
            "\t\tIdentifier Names: Evolving\n"
            "\t\tData Semantics:   Evolving\n"
            "\t\tDependency Class: ISA\n"
            "\n\tArgument Types\n"
            "\t\targs[0]: struct task_struct *\n"
            "\t\targs[1]: int\n"
            "\n");
  EXPECT_EQ(listing_details(query::d::stability_of_provider("dtrace"), {}),
            "\n\tProbe Description Attributes\n"
            "\t\tIdentifier Names: Stable\n"
            "\t\tData Semantics:   Stable\n"
            "\t\tDependency Class: Common\n"
            "\n\tArgument Attributes\n"
            "\t\tIdentifier Names: Stable\n"
            "\t\tData Semantics:   Stable\n"
            "\t\tDependency Class: Common\n"
            "\n\tArgument Types\n"
            "\t\tNone\n"
            "\n");
}

TEST(DListing, ProgramsTellHowMuchTheyMatch) {
  EXPECT_EQ(matched_text(ProgramForm::Script, "x.d", 3), "dtrace: script 'x.d' matched 3 probes\n");
  EXPECT_EQ(matched_text(ProgramForm::Description, "BEGIN", 1),
            "dtrace: description 'BEGIN' matched 1 probe\n");
  EXPECT_EQ(matched_text(ProgramForm::Description, "f:::", 0),
            "dtrace: description 'f:::' matched 0 probes\n");
  EXPECT_EQ(destructive_text(), "dtrace: allowing destructive actions\n");
}

TEST(DListing, TellsOfTheEndOfATarget) {
  EXPECT_EQ(exited_text(42, std::nullopt), "dtrace: pid 42 has exited\n");
  EXPECT_EQ(exited_text(42, 0), "dtrace: pid 42 has exited\n");
  EXPECT_EQ(exited_text(42, 3 << 8), "dtrace: pid 42 exited with status 3\n");
  EXPECT_EQ(exited_text(42, SIGKILL), "dtrace: pid 42 terminated by SIGKILL\n");
  EXPECT_EQ(exited_text(42, SIGRTMIN + 1), "dtrace: pid 42 terminated by signal 35\n");
}

TEST(DListing, ProgramsTellTheStabilityOfProbesAndStatements) {
  using query::d::parse_stability;
  EXPECT_EQ(program_stability(ProgramForm::Script, "x.d", *parse_stability("Private/Evolving/ISA"),
                              *parse_stability("Stable/Private/Common")),
            "\nStability attributes for script x.d:\n"
            "\n\tMinimum Probe Description Attributes\n"
            "\t\tIdentifier Names: Private\n"
            "\t\tData Semantics:   Evolving\n"
            "\t\tDependency Class: ISA\n"
            "\n\tMinimum Statement Attributes\n"
            "\t\tIdentifier Names: Stable\n"
            "\t\tData Semantics:   Private\n"
            "\t\tDependency Class: Common\n"
            "\n");
}

TEST(DPrintOptions, AreThoseOfTheScript) {
  query::d::Options options;
  options.values = {{"quiet", ""},        {"aggsortkey", "1"},    {"aggsortrev", "no"},
                    {"stackindent", "4"}, {"aggsortkeypos", "2"}, {"bufsize", "4m"}};
  const PrintOptions result = PrintOptions::from(options);
  EXPECT_TRUE(result.is_quiet);
  EXPECT_TRUE(result.sorts_by_key);
  EXPECT_FALSE(result.sorts_reversed);
  EXPECT_EQ(result.stack_indent, 4U);
  EXPECT_EQ(result.sort_key_position, 2U);
}

TEST(DPrintOptions, OthersAreNotTaken) {
  PrintOptions options;
  EXPECT_TRUE(options.set("flowindent", ""));
  EXPECT_TRUE(options.has_flow_indent);
  EXPECT_TRUE(options.set("flowindent", "unset"));
  EXPECT_FALSE(options.has_flow_indent);
  EXPECT_FALSE(options.set("bufsize", "1k"));
}

TEST(DPrintOptions, WhatSaysOffIsOff) {
  for (const std::string_view off : {"0", "off", "no", "false", "unset", "disable", "disabled"}) {
    PrintOptions options;
    EXPECT_TRUE(options.set("quiet", "1"));
    EXPECT_TRUE(options.set("quiet", off)) << off;
    EXPECT_FALSE(options.is_quiet) << off;
  }
}

TEST(DPrintOptions, ValuesThatAreNoneChangeNothing) {
  PrintOptions options;
  EXPECT_TRUE(options.set("quiet", "on"));
  EXPECT_FALSE(options.set("quiet", "perhaps"));
  EXPECT_TRUE(options.is_quiet);
  EXPECT_FALSE(options.set("stackindent", "4x"));
  EXPECT_EQ(options.stack_indent, 14U);
}

}  // namespace
}  // namespace clew::output::d
