/* SPDX-License-Identifier: Apache-2.0 */
/* setopt() of what cannot be set now says so, and tracing goes on. */
/* flags: -q */
/* stderr: dtrace: couldn't set option "bufsize" to "1m": Operation illegal when tracing is active */
/* stderr: dtrace: couldn't set option "no_such" to "1": Invalid option name */
/* stderr: dtrace: couldn't set option "quiet" to "perhaps": Invalid value for specified option */
BEGIN
{
	setopt("bufsize", "1m");
	setopt("no_such", "1");
	setopt("quiet", "perhaps");
	printf("on\n");
	exit(0);
}
/* output:
on

*/
