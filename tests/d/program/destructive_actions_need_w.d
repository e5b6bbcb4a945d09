/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 48: without -w the program is not enabled. */
/* status: 1 */
/* stderr: dtrace: could not enable tracing: Destructive actions not allowed */
BEGIN
{
	system("echo never");
	exit(0);
}
