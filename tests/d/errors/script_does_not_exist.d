/* SPDX-License-Identifier: Apache-2.0 */
/* The name of the script is part of the message. */
/* flags: -q -s /no/such/script.d */
/* status: 1 */
/* stderr: dtrace: failed to open /no/such/script.d: No such file or directory */
BEGIN
{
	exit(0);
}
