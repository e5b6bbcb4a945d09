/* SPDX-License-Identifier: Apache-2.0 */
/* The last word counts. */
/* flags: -q -w -x destructive=disable */
/* status: 1 */
/* stderr: could not enable tracing: Destructive actions not allowed */
BEGIN
{
	system("echo wrong");
	exit(0);
}
