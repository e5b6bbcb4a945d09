/* SPDX-License-Identifier: Apache-2.0 */
/* args[0] of exec-failure is the errno. */
/* flags: -q -c "/usr/bin/env /no/such/program" */
proc:::exec-failure
/pid == $target/
{
	printf("%d\n", args[0]);
}
/* output:
2

*/
