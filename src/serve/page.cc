// SPDX-License-Identifier: Apache-2.0
#include "serve/page.h"

#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace clew::serve {
namespace {

struct BuiltInFile {
  const char* name;
  const char* begin;
  const char* end;
};

// page_files.S.in; a name that is null ends it.
extern "C" const BuiltInFile clew_page_files[];

constexpr std::array<std::string_view, 7> kNames = {
    "index.html",       "app.js",          "app.css", "editor.js",
    "stream-worker.js", "flame-worker.js", "icon.svg"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTypes = {{
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".svg", "image/svg+xml"},
}};

std::string_view type_of(std::string_view name) {
  for (const auto& [suffix, type] : kTypes)
    if (name.ends_with(suffix)) return type;
  return "application/octet-stream";
}

// FNV-1a: says that a file is another one, and guards nothing.
std::string tag_of(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("\"{:016x}\"", hash);
}

}  // namespace

Page Page::built_in() {
  Page page;
  for (const BuiltInFile* file = clew_page_files; file->name != nullptr; ++file)
    page.add(file->name, std::string(file->begin, file->end), true);
  return page;
}

Expected<Page> Page::of_folder(const std::string& folder) {
  Page page;
  for (const std::string_view name : kNames) {
    std::ifstream file(fmt::format("{}/{}", folder, name), std::ios::binary);
    if (!file) continue;
    page.add(std::string(name), std::string(std::istreambuf_iterator<char>(file), {}), false);
  }
  if (!page.files_.contains("index.html"))
    return fail(ErrorCode::NotFound, fmt::format("no index.html in {}", folder));
  return page;
}

void Page::add(std::string name, std::string bytes, bool is_gzipped) {
  std::string tag = tag_of(bytes);
  files_.insert_or_assign(
      std::move(name),
      File{std::make_shared<const std::string>(std::move(bytes)), std::move(tag), is_gzipped});
}

Reply Page::answer(const HttpRequest& request) const {
  const std::string name = request.path == "/" ? "index.html" : request.path.substr(1);
  const auto found = files_.find(name);
  if (found == files_.end()) return problem(Status::NotFound, "there is no such file");
  if (request.method != "GET" && request.method != "HEAD")
    return problem(Status::MethodNotAllowed, "files are for GET");
  const File& file = found->second;
  Reply reply{.type = std::string(type_of(name)),
              .body = file.bytes,
              .headers = {{"ETag", file.tag}, {"Cache-Control", "no-cache"}}};
  if (file.is_gzipped) reply.headers.emplace_back("Content-Encoding", "gzip");
  if (request.if_none_match != file.tag) return reply;
  reply.status = Status::NotModified;
  reply.body = std::make_shared<const std::string>();
  return reply;
}

}  // namespace clew::serve
