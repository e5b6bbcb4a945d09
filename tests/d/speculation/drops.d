/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 45: what does not fit into specsize is dropped, and counted. */
/* flags: -q -x specsize=1k */
/* stderr: dtrace: 3 speculative drops */
BEGIN { s = speculation(); }
BEGIN { speculate(s); trace("a"); }
BEGIN { speculate(s); trace("b"); }
BEGIN { speculate(s); trace("c"); }
BEGIN { speculate(s); trace("d"); }
BEGIN { speculate(s); trace("e"); }
BEGIN { speculate(s); trace("f"); }
BEGIN { commit(s); }
BEGIN { exit(0); }
/* output:
abc
*/
