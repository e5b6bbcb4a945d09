// SPDX-License-Identifier: Apache-2.0
// clew ui: the page in a browser.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "cmd/console.h"
#include "cmd/parse_arguments.h"
#include "cmd/verbs.h"
#include "ledger/who.h"
#include "output/sinks.h"
#include "serve/serve.h"

namespace clew::cmd {
namespace {

constexpr uint64_t kPortMax = 65535;

struct UiArguments {
  serve::Settings settings{.port = serve::kUsualPort};
  bool no_open = false;
};

void declare(CLI::App& app, UiArguments& arguments) {
  app.add_option("--port", arguments.settings.port,
                 fmt::format("listen there, on the loopback interface ({}); 0: any that is free",
                             serve::kUsualPort))
      ->check(whole_number(0, kPortMax));
  app.add_flag("--no-open", arguments.no_open, "print the URL, and open no browser");
  app.add_flag("--allow-commands", arguments.settings.facts.commands_allowed,
               "the page may start commands, as -c does");
  app.add_option("--page", arguments.settings.page_folder,
                 "serve the page of this folder, for those who write it");
}

void print_url(const std::string& url) {
  fmt::print("{}\n", url);
  (void)std::fflush(stdout);
}

}  // namespace

int ui_verb(int argument_count, const char* const* arguments) {
  CLI::App app{
      "Serves the page, where queries are asked and answers are looked at, to a browser "
      "of this machine.",
      "clew ui"};
  UiArguments parsed;
  declare(app, parsed);
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  const output::About about = output::about_here("");
  serve::ServerFacts& facts = parsed.settings.facts;
  facts.version = about.version;
  facts.host = about.host;
  facts.user = ledger::user_name(geteuid());
  const Expected<FileDescriptor> stop = signals_as_descriptor(ReaderGone::GoesOn);
  if (!stop) return report(stop.error());
  const Expected<void> served = serve::serve(parsed.settings, stop->get(), print_url);
  return served ? kExitAnswered : report(served.error());
}

}  // namespace clew::cmd
