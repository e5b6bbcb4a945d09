/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations alone trace nothing: that is told at once. */
/* status: 1 */
/* stderr: dtrace: no probes matched */
int x;
struct s { int a; };
