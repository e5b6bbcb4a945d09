// SPDX-License-Identifier: Apache-2.0
// The options that say which processes are meant, alike for all verbs.
#pragma once

#include <array>
#include <string>

#include <CLI/CLI.hpp>

#include "engine/chosen.h"

namespace clew::cmd {

inline constexpr std::array kWhoseOptions = {"--container", "--unit", "--cgroup", "--user",
                                             "--command-line"};
inline constexpr std::array kProcessOptions = {"--pid",  "--name",   "--newest", "--container",
                                               "--unit", "--cgroup", "--user",   "--command-line"};

// `what`: what is done to them, as in "trace".
void declare_processes(CLI::App& app, engine::Chosen& chosen, const std::string& what);

}  // namespace clew::cmd
