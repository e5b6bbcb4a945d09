/* SPDX-License-Identifier: Apache-2.0 */
/* Memory behind that of the firing is not written to. */
/* flags: -q -c '/bin/cat /dev/null' */
/* stderr: invalid address */
syscall::openat:entry
/pid == $target/
{
	copyinto(arg1, 64, (void *)((uint64_t)alloca(8) + 0xB000));
	printf("wrong\n");
}
/* output:

*/
