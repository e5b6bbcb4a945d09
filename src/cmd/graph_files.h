// SPDX-License-Identifier: Apache-2.0
// The files of --graph: the picture of one request, in the form that each file's extension says. A
// file that is there stays as it is until there is a picture.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "engine/run.h"
#include "output/request_graph.h"
#include "output/sinks.h"

namespace clew::cmd {

class GraphFiles {
 public:
  // Opens all, before anything else. Errors: one cannot be written, is there twice or among
  // `others`, or has an extension that says nothing.
  Expected<void> open(const std::vector<std::string>& files,
                      const std::vector<std::string>& others);
  // Takes the picture; borrows this.
  [[nodiscard]] engine::GraphRequest request(std::string_view choice, const output::About& about);
  // Once, behind the session, and says which request it was. What could not be written, an error
  // for each file.
  [[nodiscard]] std::vector<Error> write(bool is_quiet);

 private:
  struct One {
    std::string file;
    FileDescriptor descriptor;
    output::GraphWriter writer;
  };

  std::vector<One> all_;
  std::optional<output::RequestGraph> graph_;  // None: there was no answer.
};

}  // namespace clew::cmd
