// SPDX-License-Identifier: Apache-2.0
// A bundle: a folder with a snap, and with all that it takes to show it on a machine that has
// neither the programs nor their sources.
//
//     app.bundle/app.snap
//     app.bundle/files/usr/bin/app                                   each module, by its path
//     app.bundle/files/usr/lib/debug/.build-id/12/3456….debug        what stripped ones need
//     app.bundle/files/home/me/app.c                                 sources of the lines that ran
//
// Paths come from a snap and from debug information, so from anybody. Nothing is written outside of
// the folder, and of sources only what is called like one is taken: a program could name a file
// that its user would not give away.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "recorder/snap.h"

namespace clew::recorder {

struct BundleContents {
  size_t modules = 0;
  size_t debug_files = 0;
  size_t sources = 0;
  std::vector<std::string> problems;  // What is not in it, and why.
};

struct BundleRequest {
  std::string snap;
  std::string folder;  // Is made.
  std::vector<std::string> source_folders = {};
  std::function<void(std::string_view)> progress = {};
};

// Errors: those of reading the snap; Io, also when the folder is there.
Expected<BundleContents> write_bundle(const BundleRequest& request);

// The path of a bundle's only snap. Errors: NotFound; Refused when there are several.
Expected<std::string> snap_in(const std::string& folder);

// Where debug files of packages are, in hexadecimal digits; empty for what is no build-id.
std::string debug_file_of(std::string_view build_id);

// The file that has this path in the bundle of a snap, if there is one; else the path.
std::string file_in_bundle(const Snap& snap, const std::string& path);

}  // namespace clew::recorder
