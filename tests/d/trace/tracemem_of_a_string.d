/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 24: the first argument is an address. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_TRACEMEM_ADDR] */
BEGIN
{
	s = "abc";
	tracemem(s, 4);
	exit(0);
}
