/* SPDX-License-Identifier: Apache-2.0 */
/* args[] of a function has the types of its prototype. */
/* unless: this kernel lets no program at its functions */
/* flags: -q -c "/bin/cat /dev/null" */
fbt::do_exit:entry
/pid == $target/
{
	printf("%d %d\n", args[0], sizeof (args[0]));
}
/* output:
0 8

*/
