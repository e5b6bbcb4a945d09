/* SPDX-License-Identifier: Apache-2.0 */
/* What cannot be read is an error. */
/* flags: -q -s /proc */
/* status: 1 */
/* stderr: dtrace: failed to read /proc: Is a directory */
BEGIN
{
	exit(0);
}
