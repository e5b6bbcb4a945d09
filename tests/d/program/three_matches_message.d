/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 5: plural. */
/* flags: -o /dev/null */
/* stderr: dtrace: script ' */
/* stderr: three_matches_message.d' matched 3 probes */
BEGIN
{
	exit(0);
}
BEGIN, END
{
}
