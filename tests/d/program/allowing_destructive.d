/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 5 and 48: what matched is told before what is refused. */
/* flags: -x quiet=off */
/* status: 1 */
/* stderr: matched 1 probe
dtrace: could not enable tracing: Destructive actions not allowed */
BEGIN
{
	system("true");
	exit(0);
}
