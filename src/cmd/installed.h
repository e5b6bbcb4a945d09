// SPDX-License-Identifier: Apache-2.0
// Where the files are that come with the command, and those that a user adds.
#pragma once

#include <string>
#include <vector>

namespace clew::cmd {

// Where the environment says, else beside the command (PREFIX/bin/clew, PREFIX/share/clew/…), else
// where the build knows them to be.
std::string vocabulary_folder();
std::string extension_folder();
std::string verb_folder();
std::string example_folder();

// ~/.config/clew/NAME, whether it is there or not; empty without a home.
std::string own_folder(const std::string& name);

}  // namespace clew::cmd
