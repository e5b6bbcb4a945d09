// SPDX-License-Identifier: Apache-2.0
// The sinks, one per format. Private to the folder: others use make_sink.
#pragma once

#include <memory>

#include "output/sinks.h"

namespace clew::output {

std::unique_ptr<RowSink> make_text_sink(const SinkOptions& options, ByteSink& bytes,
                                        ByteSink& notes);
std::unique_ptr<RowSink> make_json_sink(const SinkOptions& options, ByteSink& bytes,
                                        ByteSink& notes);
std::unique_ptr<RowSink> make_csv_sink(const SinkOptions& options, ByteSink& bytes,
                                       ByteSink& notes);
std::unique_ptr<RowSink> make_stream_sink(const SinkOptions& options, ByteSink& bytes,
                                          ByteSink& notes);
std::unique_ptr<RowSink> make_folded_sink(const SinkOptions& options, ByteSink& bytes,
                                          ByteSink& notes);
std::unique_ptr<RowSink> make_svg_sink(const SinkOptions& options, ByteSink& bytes,
                                       ByteSink& notes);
std::unique_ptr<RowSink> make_otlp_sink(const SinkOptions& options, ByteSink& bytes,
                                        ByteSink& notes);
Expected<std::unique_ptr<RowSink>> open_sqlite_sink(const SinkOptions& options,
                                                    const std::string& file);

}  // namespace clew::output
