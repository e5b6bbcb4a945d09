/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 48: what says off is off. */
/* flags: -q -x destructive=off */
/* status: 1 */
/* stderr: could not enable tracing: Destructive actions not allowed */
BEGIN
{
	system("echo wrong");
	exit(0);
}
