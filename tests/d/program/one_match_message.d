/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 5: the line on stderr counts clause and probe pairs. */
/* flags: -o /dev/null */
/* stderr: matched 1 probe */
BEGIN
{
	exit(0);
}
