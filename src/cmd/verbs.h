// SPDX-License-Identifier: Apache-2.0
// The verbs of the command. Each takes its own arguments (the first is the verb) and returns the
// exit status.
#pragma once

namespace clew::cmd {

inline constexpr int kExitAnswered = 0;
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;

int run_verb(int argument_count, const char* const* arguments);
int dtrace_verb(int argument_count, const char* const* arguments);
int list_verb(int argument_count, const char* const* arguments);
int explain_verb(int argument_count, const char* const* arguments);
int examples_verb(int argument_count, const char* const* arguments);
int doctor_verb(int argument_count, const char* const* arguments);
int record_verb(int argument_count, const char* const* arguments);
int snap_verb(int argument_count, const char* const* arguments);
int show_verb(int argument_count, const char* const* arguments);
int ui_verb(int argument_count, const char* const* arguments);
int node_verb(int argument_count, const char* const* arguments);
int root_verb(int argument_count, const char* const* arguments);
int key_verb(int argument_count, const char* const* arguments);
int cluster_verb(int argument_count, const char* const* arguments);
int results_verb(int argument_count, const char* const* arguments);
int ps_verb(int argument_count, const char* const* arguments);
int log_verb(int argument_count, const char* const* arguments);
int bug_report_verb(int argument_count, const char* const* arguments);
int detach_verb(int argument_count, const char* const* arguments);

}  // namespace clew::cmd
