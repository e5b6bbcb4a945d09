/* SPDX-License-Identifier: Apache-2.0 */
/* More clauses of one probe than a program can have are an error, which names some of them. */
/* flags: -q -C */
/* status: 1 */
/* stderr: dtrace: could not enable tracing: clause 0, 0, 0, 0, 0, 0, 0, 0 and 9992 more: */
#define TEN(x) x, x, x, x, x, x, x, x, x, x
TEN(TEN(TEN(TEN(BEGIN))))
{
	n++;
}
