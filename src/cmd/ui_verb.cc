// SPDX-License-Identifier: Apache-2.0
// clew ui: the page in a browser.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "cmd/console.h"
#include "cmd/open_browser.h"
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

// To a shell on another machine: how the browser gets here.
void print_way(const std::string& url) {
  const char* const connection = std::getenv("SSH_CONNECTION");  // NOLINT(concurrency-mt-unsafe)
  const size_t colon = url.rfind(':', url.find('#'));
  if (connection == nullptr || colon == std::string::npos) return;
  const std::string port = url.substr(colon + 1, url.find('/', colon) - colon - 1);
  fmt::print(stderr, "from your own machine first: ssh -L {0}:127.0.0.1:{0} {1}\n", port,
             output::about_here("").host);
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
  std::optional<BrowserFile> file;
  const auto tell = [&](const std::string& url) {
    print_url(url);
    print_way(url);
    if (parsed.no_open || isatty(STDOUT_FILENO) == 0) return;
    if (auto made = BrowserFile::make(url)) file.emplace(std::move(*made));
    if (file && !file->open()) fmt::print(stderr, "clew: no browser could be opened\n");
  };
  const Expected<void> served = serve::serve(parsed.settings, stop->get(), tell);
  return served ? kExitAnswered : report(served.error());
}

}  // namespace clew::cmd
