/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 49: the program may ask for the tags of its own errors. */
/* status: 1 */
/* stderr: [D_SYNTAX] */
#pragma D option errtags
BEGIN
{
	trace(;
}
