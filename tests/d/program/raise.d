/* SPDX-License-Identifier: Apache-2.0 */
/* raise() sends a signal to the process that fired the probe. */
/* flags: -q -w -c "/bin/sleep 30" */
syscall::clock_nanosleep:entry
/pid == $target/
{
	raise(15);
}
END
{
	printf("end\n");
}
/* output:
end

*/
