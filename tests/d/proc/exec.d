/* SPDX-License-Identifier: Apache-2.0 */
/* args[0] of exec is the path. */
/* flags: -q -c "/usr/bin/env /bin/true" */
proc:::exec
/pid == $target && execname == "env"/
{
	printf("%s\n", stringof(args[0]));
}
/* output:
/bin/true

*/
