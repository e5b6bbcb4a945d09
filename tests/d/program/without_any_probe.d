/* SPDX-License-Identifier: Apache-2.0 */
/* A file that has no probes ends at once. */
/* status: 1 */
/* stderr: no probes matched */
struct in { int a; };
translator struct in < int i > { a = i; };
inline int one = 1;
